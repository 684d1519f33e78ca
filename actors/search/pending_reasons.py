"""Why podgroups starve, written down where it outlives the cycle: a capped stream, one entry each time it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from actors.broker.bus import STARVING, Bus, Entry
from actors.columns.decision_message import Naming, explained
from actors.contracts import PendingReport
from actors.documents.safe_msgpack import unpacked
from pipeline.actions.progress import Unplaced

log = logging.getLogger(__name__)

#: About how many entries are kept, and how many domains are named in each.
KEPT, DOMAINS_SHOWN = 10_000, 8
#: What has not changed is said again after so long, so that it is not cut off while it holds.
AGAIN_S = 600.0
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Waits:
    """Why a podgroup starves: since when nothing else was found (seconds), and an explanation for each action.

    Without any explanation: it starves no more.
    """

    podgroup: str
    at: float
    attempts: tuple[Mapping[str, Any], ...]

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Action and reason of each attempt: what makes it the same as before."""
        return tuple((str(one["action"]), str(one["reason"])) for one in self.attempts)


class StarvingReasons:
    """Writes the reasons of one fleet. Not for several threads at once.

    Parameters
    ----------
    naming
        What the rows of an report are called; of its epoch.
    now_s
        The clock, in seconds since the epoch.
    """

    def __init__(self, bus: Bus, naming: Naming, *, now_s: Callable[[], float]) -> None:
        self._bus, self._naming, self._now_s = bus, naming, now_s
        self._said: dict[str, Waits] | None = None

    def take(self, report: PendingReport) -> None:
        """Write down what is new about who starves, and who no longer does."""
        if self._said is None:  # after a start: go on where a predecessor stopped
            self._said = {one.podgroup: one for one in newest(self._bus) if one.attempts}
        now, starving = self._now_s(), self._naming.podgroups(report.starving)
        by_unit: dict[tuple[int, ...], list[Unplaced]] = {}
        for one in report.unplaced:
            by_unit.setdefault(one.unit, []).append(one)
        for unit, attempts in by_unit.items():
            for name in self._naming.podgroups(unit):
                self._say(Waits(name, now, self._attempts(attempts)))
        for name in sorted(self._said.keys() - set(starving)):
            self._write(Waits(name, now, ()))
            del self._said[name]

    def forget(self) -> None:
        """Another service writes now; what it says is read when it is our turn again."""
        self._said = None

    def _attempts(self, attempts: Sequence[Unplaced]) -> tuple[Mapping[str, Any], ...]:
        return tuple({"action": one.action} | explained(one.why, self._naming, DOMAINS_SHOWN) for one in attempts)

    def _say(self, waits: Waits) -> None:
        assert self._said is not None
        before = self._said.get(waits.podgroup)
        if before is None or before.reasons != waits.reasons or waits.at >= before.at + AGAIN_S:
            self._write(waits)
            self._said[waits.podgroup] = waits

    def _write(self, waits: Waits) -> None:
        fields = {"podgroup": waits.podgroup.encode(), "why": msgpack.packb([waits.at, list(waits.attempts)])}
        self._bus.publish(STARVING, fields, cap=KEPT, insist=True)


def newest(bus: Bus) -> Iterator[Waits]:
    """The last entry about each podgroup, the newest first."""
    before: str | None = None
    seen: set[str] = set()
    while entries := bus.newest(STARVING, count=_PAGE, before=before):
        before = entries[-1].id
        for entry in entries:
            waits = _read(entry)
            if waits is not None and waits.podgroup not in seen:
                seen.add(waits.podgroup)
                yield waits


def _read(entry: Entry) -> Waits | None:
    """What an entry says; None if it says nothing of ours."""
    try:
        at, attempts = unpacked(entry.fields["why"])
        told = tuple(dict(one) for one in attempts)
        waits = Waits(entry.fields["podgroup"].decode(), float(at), told)
        _ = waits.reasons
    except (KeyError, TypeError, ValueError) as refusal:
        log.warning("entry %s of why podgroups wait is passed over: %r", entry.id, refusal)
        return None
    return waits
