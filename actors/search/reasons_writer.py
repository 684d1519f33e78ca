"""Writes why podgroups wait to a capped stream, so that it outlives the cycle: one entry for each change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import msgpack
import numpy as np

from actors.broker.bus import STARVING, Bus
from actors.columns.explanation_message import condition, unplaced
from actors.columns.name_directory import Directory
from actors.contracts import PendingReport
from actors.search.pending_reasons import PendingReasons, waiting
from pipeline.cluster.arrays import NONE, Longs, is_among

#: About how many entries are kept, and how many domains are named in each.
KEPT, DOMAINS_SHOWN = 10_000, 8
#: Unchanged reasons are written again after this time, so that they are not trimmed while they hold.
AGAIN_S = 600.0
#: Explanations that changed under the same reasons are written at most this often in that time, so that the others are
#: not trimmed.
_DETAILS = KEPT // 4
#: At most this many conditions of one report are written; the others follow with the next reports.
AT_ONCE = 1_000
#: The first places in the policy's order are written again when they change, this often at most.
PLACES, PLACES_EVERY_S = 100, 30.0


class ReasonsWriter:
    """Writes the reasons of one fleet. Not for several threads at once.

    Parameters
    ----------
    naming
        Names of the rows of a report's epoch.
    now_s
        The clock, in seconds since the epoch.
    elapsed_s
        A clock that is never set, in seconds, for what is written again; None: ``now_s``.
    """

    def __init__(
        self, bus: Bus, naming: Directory, *, now_s: Callable[[], float], elapsed_s: Callable[[], float] | None = None
    ) -> None:
        self._bus, self._naming, self._now_s, self._elapsed_s = bus, naming, now_s, elapsed_s or now_s
        self._due: list[dict[str, bytes]] = []
        self._said: dict[str, PendingReasons] | None = None
        #: For each podgroup row of the epoch the condition's reason that was written last; NONE: none.
        self._codes: Longs = np.zeros(0, np.int64)
        self._epoch, self._again_at = NONE, -math.inf
        #: Places of this report, and those of the first that were written last, with when.
        self._places: dict[str, int] = {}
        self._written_places: dict[str, int] = {}
        self._place_at = -math.inf

    def take(self, report: PendingReport, names: AbstractContextManager[object] | None = None) -> None:
        """Write changed reasons, and that podgroups no longer wait; nothing for rows without names.

        Parameters
        ----------
        names
            Held while names are looked up, and not while the broker is asked: that may take long.
        """
        if self._said is None:  # after a start: continue from what a predecessor wrote
            self._said = waiting(self._bus)
            self._written_places = {name: one.place[0] for name, one in self._said.items() if one.place is not None}
            self._codes = np.zeros(0, np.int64)
        with names if names is not None else nullcontext():
            if not self._naming.knows(report.epoch, report.starving):
                return
            self._compare(report)
        due, self._due = self._due, []
        self._bus.publish_all(STARVING, due, cap=KEPT)

    def _compare(self, report: PendingReport) -> None:
        """Find what is to be written."""
        assert self._said is not None
        now, order = self._now_s(), self._naming.podgroups(report.starving)
        starving = set(order)
        self._places = {name: at for at, name in enumerate(order, 1)}
        attempts, conditions = self._attempts(report), self._changed(report)
        for name in (*attempts, *(name for name in conditions if name not in attempts)):
            before = self._said.get(name, PendingReasons(name, now, ()))
            kept = before.attempts if name in starving else ()
            self._say(PendingReasons(name, now, attempts.get(name, kept), conditions.get(name, before.condition)))
        self._end(report, starving, now)
        if self._elapsed_s() >= self._place_at + PLACES_EVERY_S:
            self._place_at = self._elapsed_s()
            for name in order[:PLACES]:
                if name in self._said and self._written_places.get(name) != self._places[name]:
                    self._note(self._said[name])

    @property
    def oldest(self) -> float:
        """Since when the podgroup waits that has waited longest, in seconds since 1970; 0 where none waits."""
        return min((one.since for one in (self._said or {}).values() if one.since is not None), default=0.0)

    def forget(self) -> None:
        """Forget what was written, since another service writes now; it is read when this service leads again."""
        self._said = None

    def _attempts(self, report: PendingReport) -> dict[str, tuple[Mapping[str, Any], ...]]:
        """Why no plan was found, by podgroup."""
        by_gang_group: dict[tuple[int, ...], list[Mapping[str, Any]]] = {}
        for one in report.unplaced:
            told = unplaced(one.action, one.why, self._naming, DOMAINS_SHOWN)
            by_gang_group.setdefault(one.gang_group, []).append(told)
        return {name: tuple(told) for rows, told in by_gang_group.items() for name in self._naming.podgroups(rows)}

    def _changed(self, report: PendingReport) -> dict[str, Mapping[str, Any]]:
        """At most `AT_ONCE` conditions: their reason changed, or was not written lately, or they have no plan."""
        left = report.unscheduled
        elapsed_s = self._elapsed_s()
        if report.epoch != self._epoch or elapsed_s >= self._again_at:
            self._epoch, self._again_at, self._codes = report.epoch, elapsed_s + AGAIN_S, np.zeros(0, np.int64)
        more = int(left.podgroup.max(initial=-1)) + 1 - len(self._codes)
        self._codes = np.concatenate([self._codes, np.full(max(0, more), NONE, np.int64)])
        searched = np.array([row for one in report.unplaced for row in one.gang_group], np.int64)
        at = np.flatnonzero((self._codes[left.podgroup] != left.reason) | is_among(left.podgroup, searched))[:AT_ONCE]
        new = left.only(at)
        self._codes[new.podgroup] = new.reason
        said = (condition(one, report.held.get(one.podgroup, ()), self._naming) for one in new)
        return dict(zip(self._naming.podgroups(new.podgroup.tolist()), said, strict=True))

    def _end(self, report: PendingReport, starving: set[str], now: float) -> None:
        """Write that podgroups no longer starve, or are scheduled."""
        assert self._said is not None
        names = sorted(self._said)
        rows = self._naming.podgroup_rows(names)
        for name, row, waits in zip(names, rows, np.isin(rows, report.unscheduled.podgroup), strict=True):
            before = self._said[name]
            after = replace(
                before,
                at=now,
                attempts=before.attempts if name in starving else (),
                condition=before.condition if waits else None,
            )
            if not waits and 0 <= row < len(self._codes):
                self._codes[row] = NONE
            if after.reasons != before.reasons:
                self._note(after)
                self._said[name] = after
            if not after.reasons:
                del self._said[name]

    def _say(self, waits: PendingReasons) -> None:
        assert self._said is not None
        before = self._said.get(waits.podgroup)
        began = waits.at if before is None or before.since is None else before.since
        waits = replace(waits, since=began)
        lasts_s = AGAIN_S
        if before is not None and (before.attempts, before.condition) != (waits.attempts, waits.condition):
            lasts_s = AGAIN_S * min(1.0, len(self._said) / _DETAILS)
        if before is None or before.reasons != waits.reasons or abs(waits.at - before.at) >= lasts_s:
            self._note(waits)
            self._said[waits.podgroup] = waits

    def _note(self, waits: PendingReasons) -> None:
        fields = {"podgroup": waits.podgroup.encode(), "why": msgpack.packb([waits.at, list(waits.attempts)])}
        if waits.condition is not None:
            fields["condition"] = msgpack.packb(waits.condition)
        if waits.reasons and waits.since is not None:
            fields["since"] = msgpack.packb(waits.since)
        if waits.attempts and waits.podgroup in self._places:
            place = self._written_places[waits.podgroup] = self._places[waits.podgroup]
            fields["place"] = msgpack.packb([place, len(self._places)])
        else:
            self._written_places.pop(waits.podgroup, None)
        self._due.append(fields)
