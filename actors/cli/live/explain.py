"""``clearway explain``: decisions in words, and why podgroups wait, from the streams that record both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from actors.broker.bus import DECISIONS, Bus, from_newest, id_order
from actors.cli.live.reading import at, reading
from actors.cli.sentences import attempt_lines, condition_lines, decision_lines, first_few, many, plain_decision
from actors.configuration.settings import Settings
from actors.documents.results import say, say_lines
from actors.protocol.bodies import DomainReleased, DomainReserved, Nomination, PlanCommitted, PlanWithdrawn
from actors.protocol.envelopes import Message, decisions_in
from actors.protocol.outcomes import fulfilled
from actors.search.pending_reasons import PendingReasons, waiting


@dataclass(frozen=True, slots=True)
class Made:
    """A decision that stands in the stream.

    Attributes
    ----------
    number
        In the ledger.
    at_s
        When it was recorded, in seconds.
    trace_id
        Of the cycle that it came from; empty without one.
    end
        How it ended: fulfilled, or why it was taken back; None if it has not.
    """

    body: PlanCommitted
    number: int
    at_s: float
    trace_id: str
    end: str | None

    def said(self, name: str | None = None) -> dict[str, Any]:
        """The decision as plain data, with what it does to the podgroup or task of this name (None: to all)."""
        known = {
            "number": self.number,
            "at": self.at_s,
            "plan_id": self.body.plan_id,
            "trace_id": self.trace_id or None,
        }
        lists = {
            "evictions": [one.model_dump() for one in self.body.evictions if name in (None, one.task, one.podgroup)],
            "nominations": [one.model_dump() for one in self.body.nominations if self._of(name, one.task)],
            "bindings": [one.model_dump() for one in self.body.bindings if self._of(name, one.task)],
        }
        return known | plain_decision(self.body) | lists | {"end": self.end}

    def _of(self, name: str | None, task: str) -> bool:
        return name in (None, self.body.preemptor, task)

    def concerns(self, name: str | None) -> bool:
        """Whether it does anything for or to the podgroup or task of this name."""
        body = self.body
        if name in (None, body.preemptor):
            return True
        victims = (name in (one.task, one.podgroup) for one in body.evictions)
        placed = name in {one.task for one in body.nominations} | {one.task for one in body.bindings}
        groups = (name == one.get("podgroup") for one in body.explanation.get("victims", ()))
        return placed or any(victims) or any(groups)

    def lines(self, name: str | None) -> Iterator[str]:
        """The decision in words, the podgroup or task of this name first."""
        head, *rest = decision_lines(plain_decision(self.body), self.number, self.end, first=name)
        yield head
        trace = f", trace {self.trace_id}" if self.trace_id else ""
        yield f"  at {at(self.at_s)}, plan {self.body.plan_id}{trace}"
        yield from self._done_to(name)
        yield from rest

    def _done_to(self, name: str | None) -> Iterator[str]:
        """What becomes of the task of this name, or of the tasks of a victim."""
        if name is None or name == self.body.preemptor:
            return
        gone = [one for one in self.body.evictions if name in (one.task, one.podgroup)]
        to = {one.task: f" (to {one.node})" for one in self.body.promised}
        words = [(f"{one.task} on {one.node}" if one.node else one.task) + to.get(one.task, "") for one in gone]
        if gone:
            whose = f" of {gone[0].podgroup}" if gone[0].task == name and gone[0].podgroup else ""
            yield f"  evicts {first_few(words)}{whose}"
        yield from (f"  promises {one.task} on {one.node}" for one in self.body.promised if one.task == name)
        yield from (f"  takes back the promise to {one.task}" for one in self.body.taken_back if one.task == name)
        yield from (f"  starts {one.task} on {one.node}" for one in self.body.bindings if one.task == name)


def run(settings: Settings, name: str | None, *, count: int, as_json: bool = False) -> int:
    """Print what starves and why, and the newest decisions, of all podgroups or one; 1 if there is neither.

    Raises
    ------
    SettingsRefused
        If no broker is named.
    """
    with reading(settings, "explain") as (bus, _):
        waits = [one for one in waiting(bus).values() if name in (None, one.podgroup)]
        kept, made = list(claims(bus, name)), list(concerning(bus, name, count))
    if as_json:
        say(json.dumps(_data(settings.fleet, name, waits, kept, made), ensure_ascii=False) + "\n")
        return 0 if waits or kept or made else 1
    lines = [line for one in waits[:count] for line in still(one)]
    if len(waits) > count:
        lines.append(f"and {many(len(waits) - count, 'more podgroup')} not scheduled")
    lines += [line for claim in kept for line in kept_lines(claim)]
    lines += [line for one in made for line in one.lines(name)]
    say_lines(lines or [_nothing(settings.fleet, name)])
    return 0 if lines else 1


def _nothing(fleet: str, name: str | None) -> str:
    """That there is nothing to say, and what a name should have that has no namespace."""
    about = f" that concerns {name}" if name else ""
    expected = "; expected namespace/name" if name and "/" not in name else ""
    return f"no decision and no reason to wait{about} in fleet {fleet}{expected}"


def _data(
    fleet: str, name: str | None, waits: list[PendingReasons], kept: list[DomainReserved], made: list[Made]
) -> Mapping[str, Any]:
    """All of it as one object."""
    return {
        "fleet": fleet, "about": name,
        "waits": [asdict(one) for one in waits],
        "kept": [claim.model_dump() for claim in kept],
        "decisions": [one.said(name) for one in made],
    }  # fmt: skip


def concerning(bus: Bus, name: str | None, count: int) -> Iterator[Made]:
    """The newest decisions for or against a podgroup or a task (None: any), newest first."""
    return islice((made for made in decided(bus) if made.concerns(name)), count)


def decided(bus: Bus) -> Iterator[Made]:
    """Every decision in the stream, newest first, with its end."""
    later = dict[str, tuple[int, PlanCommitted]]()
    ended = {
        plan: f"fulfilled at {at(one.at)}: each of its tasks has started, or is gone"
        for plan, one in fulfilled(bus).items()
    }
    for message in _messages(bus):
        made = message.body
        if isinstance(made, PlanWithdrawn):
            ended[made.plan_id] = f"withdrawn: {made.reason}"
        elif isinstance(made, PlanCommitted):
            if made.replaces is not None:
                late = first_few([one.task for one in made.overdue])
                ended[made.replaces] = f"replaced by decision {message.revision}: {late} did not end in time"
            at_s = id_order(message.entry)[0] / 1000
            end = ended.pop(made.plan_id, None) or _given_up(made, later)
            yield Made(made, message.revision, at_s, _trace_id(message), end)
            placed = [one.task for one in made.nominations] + [one.task for one in made.bindings]
            later |= dict.fromkeys(placed, (message.revision, made))


def _given_up(made: PlanCommitted, later: Mapping[str, tuple[int, PlanCommitted]]) -> str | None:
    """That none of a decision's promises stands, if later ones ended them all; by task, the first that names it."""
    ends = [later.get(one.task) for one in made.promised]
    told = [end for one, end in zip(made.promised, ends, strict=True) if end and one.task in _names(end[1].nominations)]
    if not told or len(told) < len(ends):
        return None
    number, last = max(told, key=lambda one: one[0])
    back = any(one.task in _names(last.taken_back) for one in made.promised)
    did = "took back its promises" if back else "promised its tasks other nodes"
    return f"given up: decision {number} for {last.preemptor or 'no podgroup'} {did}"


def _names(nominations: tuple[Nomination, ...]) -> set[str]:
    return {one.task for one in nominations}


def _messages(bus: Bus) -> Iterator[Message]:
    """What was decided, newest first."""
    return decisions_in(from_newest(bus, DECISIONS))


def _trace_id(message: Message) -> str:
    """From the W3C context, ``version-trace-span-flags``."""
    parts = message.carrier.get("traceparent", "").split("-")
    return parts[1] if len(parts) > 1 else ""


def still(waits: PendingReasons) -> Iterator[str]:
    """The reasons why a podgroup waits, as lines."""
    since = at(waits.at)
    if waits.attempts:
        began = f" since {at(waits.since)}" if waits.since is not None else ""
        place = f", {waits.place[0]} of {waits.place[1]} in order" if waits.place is not None else ""
        yield f"{waits.podgroup} starves{began}{place}; nothing was found for it at {since}"
        if waits.condition is not None:
            yield from condition_lines(waits.condition)
    elif waits.condition is not None:
        began = at(waits.since) if waits.since is not None else since
        yield from condition_lines(waits.condition, f"{waits.podgroup} is ", f" since {began}")
    for one in waits.attempts:
        yield from attempt_lines(one)


def claims(bus: Bus, podgroup: str | None) -> Iterator[DomainReserved]:
    """Domains that are kept for a podgroup (None: for all), the newest first."""
    seen: set[str] = set()
    for message in _messages(bus):
        body = message.body
        if not isinstance(body, DomainReserved | DomainReleased) or body.podgroup in seen:
            continue
        seen.add(body.podgroup)
        if isinstance(body, DomainReserved) and podgroup in (None, body.podgroup):
            yield body


def kept_lines(claim: DomainReserved) -> Iterator[str]:
    """A domain that is kept for a podgroup, as lines."""
    yield f"{claim.domain or 'the cluster'} is kept for {claim.podgroup} until {at(claim.expires_at)}"
    yield f"  {claim.refusals} plans in a row were refused, the last one because {claim.reason}"
