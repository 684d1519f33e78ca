"""``clearway check-connector``: plays Clearway's part of the protocol to a connector, and says what it did wrong."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgpack
import numpy as np

from actors.broker.address import broker_for
from actors.broker.bus import DEAD, DECISIONS, EVENTS, Bus
from actors.broker.ledger import Busy, Lease, Ledger, Record
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_ledger import RedisLedger
from actors.configuration.settings import Settings, SettingsRefused
from actors.documents.results import say
from actors.ingestion.loop import IngestLoop
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.bodies import (
    Binding,
    Eviction,
    FleetListed,
    PlanCommitted,
    PlanWithdrawn,
    ResyncRequested,
    TaskEnded,
    TaskStarted,
)
from actors.protocol.envelopes import Message, Outgoing, decode_events, pack_decision
from pipeline.cluster.tables import RUNNING, STATUS_NAMES

#: Seconds in which nothing may happen where nothing should.
_QUIET_S = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    """What one check came to: right, wrong with the reason, or not checked with the reason."""

    check: str
    outcome: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome:<12} {self.check}" + (f": {self.reason}" if self.reason else "")


class _TaskState(NamedTuple):
    """What was said of a task; ``node`` is empty unless it runs."""

    status: str
    node: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.status}{f' on {self.node}' if self.node else ''} in incarnation {self.incarnation}"


RIGHT, WRONG, UNCHECKED = "right", "wrong", "not checked"


def run(settings: Settings, limit_s: float) -> int:
    """Check the connector of a fleet on which nothing else decides; 1 if it did anything wrong.

    Raises
    ------
    SettingsRefused
        If no broker is named, or a service decides for the fleet.
    BrokerUnreachable
        If the broker does not answer for as long as the settings say, else for ``limit_s``.
    """
    if settings.redis_url is None:
        raise SettingsRefused("redis_url: expected the broker that the connector uses (--redis-url), found none")
    # What is wrong is said as a finding; a log of it would say it twice, and what we send wrongly on purpose too.
    logging.basicConfig(handlers=[logging.NullHandler()])
    with broker_for(settings) as address:
        link = replace(address, wait_s=address.wait_s or limit_s).connect("check-connector")
        bus, ledger = RedisBus(link, settings.fleet), RedisLedger(link, settings.fleet)
        lease = ledger.acquire(f"check-connector-{time.time_ns()}", int(limit_s * 20_000))
        try:
            if isinstance(lease, Busy):
                raise SettingsRefused(f"fleet {settings.fleet}: {lease.owner} decides for it; stop that service first")
            wrong = False
            for found in ConnectorCheck(settings, bus, ledger, lease, limit_s=limit_s).checks():
                say(f"{found}\n")
                wrong |= found.outcome == WRONG
        finally:
            if isinstance(lease, Lease):
                ledger.release(lease)
            bus.close()
    return 1 if wrong else 0


class ConnectorCheck:
    """One check after the other, on a fleet that has at least one running task; that task is evicted.

    Parameters
    ----------
    limit_s
        Seconds that an answer may take.
    """

    def __init__(self, settings: Settings, bus: Bus, ledger: Ledger, lease: Lease, *, limit_s: float) -> None:
        self._bus, self._ledger, self._lease, self._limit_s = bus, ledger, lease, limit_s
        self._loop = IngestLoop(settings, bus, start_telemetry(settings.telemetry, "check"))
        self._loop.leads_until(0.0)
        self._read, self._dead = bus.bounds(EVENTS).last, bus.bounds(DEAD).last
        self._heard: list[Message] = []
        self._plans = 0

    def checks(self) -> Iterator[Found]:
        """What each check came to, as soon as it is known; later ones need the list that the first asks for."""
        listed = self._lists("it lists its fleet when it is asked to")
        yield listed
        if listed.outcome == RIGHT:
            yield self._has_a_group()
            yield from self._obeys()
            yield self._goes_on_after_what_it_does_not_know()
            yield self._lists("it lists its fleet again, and says there what it said before", again=True)
            yield self._acknowledges()
        yield self._was_understood()

    def _lists(self, check: str, *, again: bool = False) -> Found:
        before, self._heard = self._state(), []
        asked = Outgoing("resync_requested", "check-connector", 0, ResyncRequested(reason="check-connector asks"))
        self._bus.publish(DECISIONS, pack_decision(asked))
        came = self._await(lambda: self._list_is_whole() and self._loop.revision >= 0)
        if not came:
            return Found(check, WRONG, f"no whole fleet_listed came within {self._limit_s:g} s")
        now = self._state()
        for name in sorted(now.keys() | before.keys()) if again else ():
            if now.get(name) != before.get(name):
                by_events, by_list = before.get(name, "unknown"), now.get(name, "unknown")
                return Found(check, WRONG, f"{name} is {by_events} by its events and {by_list} by its list")
        return Found(check, RIGHT)

    def _list_is_whole(self) -> bool:
        parts: dict[str, set[int]] = {}
        for body in (one.body for one in self._heard):
            if isinstance(body, FleetListed):
                parts.setdefault(body.list_id, set()).add(body.part)
                if len(parts[body.list_id]) == body.parts:
                    return True
        return False

    def _has_a_group(self) -> Found:
        groups = sorted(self._bus.lags(DECISIONS))
        check = "it reads decisions in a group"
        return Found(check, RIGHT) if groups else Found(check, WRONG, "no group reads the stream decisions")

    def _obeys(self) -> Iterator[Found]:
        """An eviction, the same one again, one of a life that is over, a binding of that life, and one of the next."""
        evicts, again = "it ends a task that is evicted", "it does nothing when a decision comes twice"
        stale, binds = "it ends no task in another life than was named", "it starts a task where it is bound"
        other = "it starts no task in another life than was named"
        task = self._one(RUNNING)
        if task is None:
            yield from (
                Found(one, UNCHECKED, "no task of the fleet runs") for one in (evicts, again, stale, other, binds)
            )
            return
        _, node, life = self._state()[task]
        fields = self._decide(evictions=(Eviction(task=task, incarnation=life, node=node),))
        ended = self._await(lambda: self._said(TaskEnded, task) or self._status(task) == "Gone")
        yield Found(evicts, RIGHT) if ended else self._unanswered(evicts, task, "task_ended")
        yield self._quiet(again, task, lambda: self._bus.publish(DECISIONS, fields))
        yield self._quiet(
            stale, task, lambda: self._decide(evictions=(Eviction(task=task, incarnation=life, node=node),))
        )
        if self._status(task) != "Pending":
            yield from (Found(one, UNCHECKED, f"{task} did not come back as Pending") for one in (other, binds))
            return
        bound = Binding(task=task, node=node, incarnation=life)
        yield self._quiet(other, task, lambda: self._decide(bindings=(bound,)))
        self._heard = []
        self._decide(bindings=(bound.model_copy(update={"incarnation": self._state()[task].incarnation}),))
        started = self._await(lambda: self._said(TaskStarted, task))
        where = [one.body.node for one in self._heard if isinstance(one.body, TaskStarted) and one.body.task == task]
        if started and where != [node]:
            yield Found(binds, WRONG, f"{task} was bound to {node} and started on {', '.join(where)}")
        else:
            yield Found(binds, RIGHT) if started else self._unanswered(binds, task, "task_started")

    def _goes_on_after_what_it_does_not_know(self) -> Found:
        check = "it passes over a kind and keys that it does not know"
        newer = Outgoing("fleet_serenaded", "check-connector", 0, {"a key of a later version": [1, {"two": None}]})
        self._bus.publish(DECISIONS, pack_decision(newer))
        withdrawn = PlanWithdrawn(plan_id=f"check-{self._plans}", epoch=self._lease.epoch, reason="check-connector")
        self._record(Outgoing("plan_withdrawn", withdrawn.plan_id, 0, withdrawn), "withdrawn")
        if self._await(lambda: all(not lag.undelivered for lag in self._bus.lags(DECISIONS).values())):
            return Found(check, RIGHT)
        return Found(check, WRONG, f"after it nothing was read for {self._limit_s:g} s")

    def _acknowledges(self) -> Found:
        check = "it acknowledges every decision"
        if self._await(lambda: all(not lag.pending + lag.undelivered for lag in self._bus.lags(DECISIONS).values())):
            return Found(check, RIGHT)
        left = {group: lag.pending + lag.undelivered for group, lag in self._bus.lags(DECISIONS).items()}
        by_group = ", ".join(f"{count} by {group}" for group, count in sorted(left.items()) if count)
        return Found(check, WRONG, f"not acknowledged: {by_group}")

    def _was_understood(self) -> Found:
        check = "all that it says is understood"
        self._turn()
        letters = [
            one for one in self._bus.follow(DEAD, self._dead, count=1_000) if one.fields["stream"] == EVENTS.encode()
        ]
        if not letters:
            return Found(check, RIGHT)
        first = letters[0].fields
        more = f", and {len(letters) - 1} more" if len(letters) > 1 else ""
        reason, entry = first["reason"].decode(), first["entry"].decode()
        return Found(check, WRONG, f"entry {entry}, message {first['index'].decode()}: {reason}{more}")

    def _quiet(self, check: str, task: str, act: Callable[[], object]) -> Found:
        """Check that no event about a task comes after something was done."""
        self._turn()
        self._heard = []
        act()
        until = time.monotonic() + _QUIET_S
        while time.monotonic() < until:
            self._turn()
        kinds = [one.kind for one in self._heard if getattr(one.body, "task", None) == task]
        return Found(check, WRONG, f"it said {', '.join(kinds)} of {task}") if kinds else Found(check, RIGHT)

    def _unanswered(self, check: str, task: str, kind: str) -> Found:
        others = sorted({one.kind for one in self._heard if getattr(one.body, "task", None) == task})
        instead = f"; it said {', '.join(others)}" if others else ""
        return Found(check, WRONG, f"no {kind} of {task} came within {self._limit_s:g} s{instead}")

    def _said(self, kind: type, task: str) -> bool:
        return any(isinstance(one.body, kind) and getattr(one.body, "task", None) == task for one in self._heard)

    def _decide(self, evictions: tuple[Eviction, ...] = (), bindings: tuple[Binding, ...] = ()) -> dict[str, bytes]:
        """Record a decision; its fields, for a repetition."""
        self._plans += 1
        body = PlanCommitted(
            plan_id=f"check-{self._lease.epoch}-{self._plans}", epoch=self._lease.epoch, action="preempt",
            purpose="preempt", evictions=evictions, bindings=bindings,
        )  # fmt: skip
        self._heard = []
        return self._record(Outgoing("plan_committed", body.plan_id, 0, body), "accepted")

    def _record(self, message: Outgoing, verdict: str) -> dict[str, bytes]:
        sent = pack_decision(message)
        self._ledger.commit(self._lease, [Record(f"{message.uid}:{verdict}", msgpack.packb([verdict, ""]), sent)])
        return dict(self._bus.newest(DECISIONS)[0].fields)

    def _status(self, task: str) -> str:
        """The status of a task, by what was said so far; empty if it is not known."""
        known = self._state().get(task)
        return known.status if known is not None else ""

    def _state(self) -> dict[str, _TaskState]:
        """What was said so far, by task."""
        if self._loop.revision < 0:
            return {}
        snapshot, names = self._loop.snapshot, self._loop.ingestor.state.names
        tasks, found = snapshot.tasks, {}
        for row, name in enumerate(names.tasks):
            status, node = int(tasks.status[row]), int(tasks.node[row])
            where = names.nodes[node] if status == RUNNING and node >= 0 else ""
            found[name] = _TaskState(STATUS_NAMES[status], where, int(tasks.incarnation[row]))
        return found

    def _one(self, status: int) -> str | None:
        """The first task of a status."""
        rows = np.flatnonzero(self._loop.snapshot.tasks.status == status)
        return self._loop.ingestor.state.names.tasks[int(rows[0])] if len(rows) else None

    def _await(self, holds: Callable[[], bool]) -> bool:
        until = time.monotonic() + self._limit_s
        while not holds():
            if time.monotonic() >= until:
                return False
            self._turn()
        return True

    def _turn(self) -> None:
        """Hear what was said, and fold it."""
        for entry in self._bus.follow(EVENTS, self._read, count=500, block_ms=20):
            self._read = entry.id
            self._heard += [one for one in decode_events(entry) if isinstance(one, Message)]
        self._loop.turn(block_ms=0)
