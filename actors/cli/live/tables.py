"""What ``clearway get`` and ``clearway top`` show: rows of plain data, by kind, and tables of them as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from actors.broker.bus import Bus
from actors.cli.live.explain import decided
from actors.cli.live.reading import at
from actors.documents.quantities import readable
from actors.ingestion.known.state import LiveState
from actors.protocol.outcomes import fulfilled
from actors.protocol.presence import present
from actors.search.pending_reasons import PendingReasons
from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Longs
from pipeline.cluster.resources import CPU
from pipeline.cluster.rules.gang_phase import gang_phases
from pipeline.cluster.tables import BOUND, PHASE_NAMES, QUEUE_STATE_NAMES
from pipeline.placement.conditions import unscheduled_in

Row = dict[str, Any]
_UNLIMITED = "unlimited"


def queues(state: LiveState, waits: Mapping[str, PendingReasons]) -> Iterator[Row]:
    """Each queue with what it deserves, holds with its descendants, and how many of its own podgroups wait."""
    snapshot, table = state.snapshot, state.snapshot.queues
    waiting = _waiting(state, waits)
    for row, name in enumerate(state.names.queues):
        parent = int(table.parent[row])
        mine = waiting.get(row, [])
        yield {
            "name": name, "parent": state.names.queues[parent] if parent != NONE else None,
            "state": QUEUE_STATE_NAMES[int(table.state[row])], "held": _amounts(state, snapshot.allocated[row]),
            "deserved": _amounts(state, table.deserved[row]), "capability": _amounts(state, table.capability[row]),
            "waiting": len(mine), "oldest_wait": min((one for one in mine if one is not None), default=None),
        }  # fmt: skip


def gangs(state: LiveState, waits: Mapping[str, PendingReasons]) -> Iterator[Row]:
    """Each podgroup with its counts, and why and since when it waits, if it does."""
    snapshot, groups = state.snapshot, state.snapshot.podgroups
    reasons = {one.podgroup: one.reason.value for one in unscheduled_in(snapshot)}
    phases = gang_phases(snapshot)
    bound = np.bincount(snapshot.tasks.podgroup[snapshot.tasks.status == BOUND], minlength=len(groups))
    for row, name in enumerate(state.names.podgroups):
        if not groups.alive[row]:
            continue
        told, counts = waits.get(name), snapshot.counts
        yield {
            "name": name, "queue": state.names.queues[int(groups.queue[row])], "priority": int(groups.priority[row]),
            "minimum": int(groups.min_available[row]), "ready": int(counts.ready[row]),
            "bound": int(bound[row]), "pending": int(counts.pending[row]), "phase": PHASE_NAMES[int(groups.phase[row])],
            "gang_phase": phases[row].value,
            "reason": reasons.get(row), "since": told.since if told is not None and row in reasons else None,
            "place": told.place[0] if told is not None and told.place is not None and row in reasons else None,
        }  # fmt: skip


def nodes(state: LiveState, waits: Mapping[str, PendingReasons]) -> Iterator[Row]:
    """Each node with what it has and what is held of it."""
    del waits
    snapshot = state.snapshot
    there = state.documents.names("nodes")
    for row, name in enumerate(state.names.nodes):
        if name in there:
            allocatable = snapshot.nodes.allocatable[row]
            yield {
                "name": name, "used": _amounts(state, allocatable - snapshot.room.idle[row]),
                "allocatable": _amounts(state, allocatable),
                "nominated": _amounts(state, snapshot.room.nominated[row]),
                "unschedulable": not snapshot.nodes.schedulable[row],
            }  # fmt: skip


def decisions(bus: Bus) -> Iterator[Row]:
    """Decisions in the stream, newest first, with what became of them."""
    for made in decided(bus):
        body = made.body
        yield {
            "number": made.number, "at": made.at_s, "action": body.action, "podgroup": body.preemptor,
            "queue": body.queue, "domain": body.domain, "evicts": len(body.evictions),
            "promises": len(body.promised), "starts": len(body.bindings), "plan_id": body.plan_id,
            "end": made.end,
        }  # fmt: skip


def reservations(bus: Bus) -> Iterator[Row]:
    """Decisions that still hold room: they have promises, and are neither fulfilled nor taken back."""
    done = fulfilled(bus)
    placed: set[str] = set()
    for made in decided(bus):
        body = made.body
        left = [one for one in body.promised if one.task not in placed]
        if made.end is None and left and body.plan_id not in done:
            yield {
                "number": made.number, "podgroup": body.preemptor, "domain": body.domain, "tasks": len(left),
                "victims": len(body.evictions), "since": made.at_s, "expires": body.expires_at,
                "plan_id": body.plan_id,
            }  # fmt: skip
        placed |= {one.task for one in body.nominations} | {one.task for one in body.bindings}


def services(bus: Bus) -> Iterator[Row]:
    """The services that were there lately."""
    for owner, (seen, one) in present(bus).items():
        yield {
            "owner": owner, "host": one.host, "state": one.state, "shadow": one.shadow, "ready": one.ready,
            "why": one.why or None, "epoch": one.epoch, "profile": one.profile, "version": one.version, "seen": seen,
            "lag": {where: left.model_dump() for where, left in one.lag.items()},
            "roles": {name: place.host for name, place in one.roles.items()}, "health": one.health,
        }  # fmt: skip


#: Rows by kind: the kinds that need the state, and those that need the streams.
OF_STATE: Mapping[str, Callable[[LiveState, Mapping[str, PendingReasons]], Iterator[Row]]] = {
    "queues": queues, "gangs": gangs, "nodes": nodes,
}  # fmt: skip
OF_STREAMS: Mapping[str, Callable[[Bus], Iterator[Row]]] = {
    "reservations": reservations, "decisions": decisions, "services": services,
}  # fmt: skip


def _waiting(state: LiveState, waits: Mapping[str, PendingReasons]) -> dict[int, list[float | None]]:
    """By queue, since when each of its unscheduled podgroups waits; None where that is not known."""
    found: dict[int, list[float | None]] = {}
    for one in unscheduled_in(state.snapshot):
        told = waits.get(state.names.podgroups[one.podgroup])
        queue = int(state.snapshot.podgroups.queue[one.podgroup])
        found.setdefault(queue, []).append(told.since if told is not None else None)
    return found


def _amounts(state: LiveState, column: Longs) -> dict[str, float | str]:
    """By resource, in cores, bytes and pieces; what is not stated is left out."""
    names = state.snapshot.vocabulary.resources
    stated = {name: value for name, value in zip(names, column.tolist(), strict=True) if value != UNSET}
    return {
        name: _UNLIMITED if value >= UNLIMITED else value / 1000 if name == names[CPU] else value
        for name, value in stated.items()
        if value != UNLIMITED or name != "pods"
    }


#: Columns of the table of each kind, as keys of its rows; a key with a slash shows two values.
COLUMNS: Mapping[str, Sequence[str]] = {
    "queues": ("name", "state", "held/deserved", "waiting", "oldest_wait"),
    "gangs": (
        "name", "queue", "priority", "gang_phase", "ready/minimum", "bound", "pending", "reason", "since", "place",
    ),
    "nodes": ("name", "used/allocatable", "unschedulable"),
    "reservations": ("number", "podgroup", "domain", "tasks", "victims", "since", "expires"),
    "decisions": ("number", "at", "action", "podgroup", "domain", "evicts", "promises", "starts", "end"),
    "services": ("owner", "host", "state", "shadow", "epoch", "profile", "why"),
}  # fmt: skip
_TIMES = ("at", "since", "oldest_wait", "expires", "seen")


def table(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    """Rows as aligned text, headed by the names of the columns (see `COLUMNS`)."""
    cells = [[cell(row, key) for key in columns] for row in rows]
    heads = [key.replace("_", " ").upper() for key in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for line in (heads, *cells):
        yield "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def cell(row: Row, key: str) -> str:
    """One cell: a time, yes or no, two values with a slash between them, or the value itself."""
    first, _, second = key.partition("/")
    value = row[first]
    if isinstance(value, dict):
        return _against(value, row[second])
    if second:
        return f"{value}/{row[second]}"
    if value is None:
        return "-"
    if key in _TIMES:
        return at(float(value))
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _against(held: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    """Amounts of what is stated on the right: ``gpu 104/32``."""
    said = [f"{name} {_short(name, held.get(name, 0))}/{_short(name, amount)}" for name, amount in whole.items()]
    return ", ".join(one for one in said if not one.startswith("pods ")) or "-"


def _short(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    return readable(name, value)[0]
