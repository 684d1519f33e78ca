"""Scenario S1: big gangs arrive on a full openb cluster with a real Clos network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from actors.fleets.prompt import victims_gone
from actors.replays.deciding import Timed, decide, percentiles, promises_kept
from actors.replays.fewest import fewest
from actors.replays.openb import PRIORITIES, PlacedCluster, WaitingGang, open_placed
from actors.replays.recorded import RecordingRefused
from actors.replays.report import ReplayReport
from actors.replays.rules import broken_by, broken_gangs, needless, overfull, placed_nodes, starting_freely
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes, Departures
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Explanation
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from pipeline.policy import Policy

#: The times of the recording have no common clock; see its notes.
_NOW = 0.0
_RUNS = 20
_SHOWN = 4
#: Number of gangs of event C, and how often all of them are planned before the replay gives up.
_MANY, _ROUNDS = 11, 40
#: One above the highest priority of a task, so that every task may be a victim.
_HIGHEST = max(PRIORITIES.values()) + 1


def replay(folder: Path, policy: Policy, event: str | None, priority: int | None) -> ReplayReport:
    """Replay one event, or all of them.

    Raises
    ------
    RecordingRefused
        For an event that the scenario does not have, or a recording that cannot be used.
    """
    if priority is not None and not 1 <= priority <= _HIGHEST:
        raise RecordingRefused(f"--priority: expected 1 to {_HIGHEST} in scenario s1, found {priority}")
    known: dict[str, Callable[[Path, Policy, int | None], list[dict[str, Any]]]] = {"A": _a, "B": _b, "C": _c}
    if event is not None and event.upper() not in known:
        raise RecordingRefused(f"--event: expected one of {', '.join(known)}, found {event!r}")
    chosen = known if event is None else {event.upper(): known[event.upper()]}
    rows = [row for play in chosen.values() for row in play(folder, policy, priority)]
    broken = [f"event {row['event']}: {sentence}" for row in rows for sentence in row["broken"]]
    return ReplayReport("s1", "the recorded placement at one moment, all nodes, all pods", rows, tuple(broken))


# -- one gang ----------------------------------------------------------------------------------------------------------


def _a(folder: Path, policy: Policy, priority: int | None) -> list[dict[str, Any]]:
    """64 whole nodes in one psw. Only tasks of lower priority may be victims, so the priority decides."""
    return [_one_gang("A", folder, policy, 64, "psw", value) for value in ((2, 3) if priority is None else (priority,))]


def _b(folder: Path, policy: Policy, priority: int | None) -> list[dict[str, Any]]:
    """8 whole nodes in one asw."""
    return [_one_gang("B", folder, policy, 8, "asw", 3 if priority is None else priority)]


def _one_gang(event: str, folder: Path, policy: Policy, workers: int, level: str, priority: int) -> dict[str, Any]:
    gang = WaitingGang("gang", workers, level, priority)
    placed = open_placed(folder, [gang])
    (podgroup,) = placed.gangs
    decide(placed.snapshot, policy, podgroup, _NOW)  # loads compiled code before the measurement
    timed = decide(placed.snapshot, policy, podgroup, _NOW, runs=_RUNS)
    broken = [] if timed.steady else ["the same attempt came to different plans"]
    row: dict[str, Any] = {"event": event, "gang": f"{workers} x 8 GPUs in one {level}", "priority": priority}
    outcome = timed.outcome
    why = outcome.explanation
    if isinstance(outcome, Plan):
        row |= {"decision": "placed", "domain": placed.names.domains[outcome.domain]}
        row |= _accepted(placed, policy, outcome, podgroup, broken)
        row["work_by_class"] = {_class(level): round(work, 4) for level, work in outcome.price.broken}
    else:
        row |= {"decision": "declined", "reason": why.reason.value}
    row["offers"] = _offers(placed, why, level)
    row["fewest_possible"] = _yardstick(placed, gang, podgroup)
    row["least_work_possible"] = _least_work(placed, gang, podgroup)
    return row | {"latency": percentiles(timed.spent_ms), "broken": broken}


def _accepted(placed: PlacedCluster, policy: Policy, plan: Plan, podgroup: int, broken: list[str]) -> dict[str, Any]:
    """Judge a plan, carry it out, let the fleet answer, and measure."""
    before = placed.snapshot
    verdict = judge(plan, before, policy, _NOW)
    if not isinstance(verdict, Accepted):
        broken.append(f"an unchanged state refuses the plan: {verdict.reason}")
        return {}
    made = verdict.statement
    broken += broken_by(before, made, policy.match_policy)
    after = promises_kept(victims_gone(carried_out(made, before, _NOW), _NOW), policy, _NOW)
    free = starting_freely(before, policy.match_policy)
    broken += [*broken_gangs(after, np.array([podgroup]), free), *overfull(after)]
    taken = [(task, podgroup) for task in made.evictions.tolist()]
    return measured(placed, after, [podgroup], taken) | {"could_have_stayed": needless(before, made)}


def measured(
    placed: PlacedCluster, after: Snapshot, gangs: Sequence[int], taken: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Measures of what was evicted: counts by class, device hours where they are recorded, evicted to requested.

    Parameters
    ----------
    after
        The state after the fleet has answered.
    taken
        Pairs of a victim and the gang that it was evicted for.
    """
    victims = np.array([task for task, _ in taken], np.int64)
    by_class = Counter(placed.qos[task] for task in victims.tolist())
    known = victims[~np.isnan(placed.hours[victims])]
    hours = float((placed.gpus[known] * placed.hours[known]).sum())
    least = {group: _minimum(after, group) for group in gangs}
    have = {group: len(placed_nodes(after, group)) for group in gangs}
    asked = sum(float(placed.gpus[after.tasks_of(group)].sum()) for group in gangs)
    return {
        "victims": len(victims),
        "victims_by_class": {name: by_class[name] for name in PRIORITIES if by_class[name]},
        "gpu_victims": int((placed.gpus[victims] > 0).sum()),
        "victim_gpu_hours": {"recorded": round(hours, 1), "of_victims": len(known)},
        "evictions_without_placement": sum(have[group] < least[group] for _, group in taken),
        "partial_gangs": sum(0 < have[group] < least[group] for group in gangs),
        "evicted_to_requested": round(float(placed.gpus[victims].sum()) / asked, 3) if asked else 0.0,
    }


def _minimum(snapshot: Snapshot, podgroup: int) -> int:
    return int(snapshot.podgroups.min_available[podgroup])


def _offers(placed: PlacedCluster, why: Explanation, level: str) -> list[dict[str, Any]]:
    """How many workers the domains of a level could take after all lawful evictions, the largest number first."""
    topology, words = placed.snapshot.topology, placed.snapshot.vocabulary
    reachable = {one.domain: one.reachable for one in why.tried}
    if why.ruled is not None:
        reachable |= dict(zip(why.ruled.domain.tolist(), why.ruled.reachable.tolist(), strict=True))
    rows = [row for row in topology.at_level(words.levels.index(level)).tolist() if reachable.get(row)]
    rows.sort(key=lambda row: (-reachable[row], row))
    return [{"domain": placed.names.domains[row], "workers": reachable[row]} for row in rows]


def _yardstick(placed: PlacedCluster, gang: WaitingGang, podgroup: int) -> dict[str, Any]:
    """The fewest victims by class, the most important first, in the domains that need the fewest."""
    found = [(one.classes[::-1], one.domain) for one in fewest(placed, gang, podgroup) if one.classes is not None]
    return {
        placed.names.domains[domain]: {
            qos: many for qos, many in zip(reversed(PRIORITIES), classes, strict=True) if many
        }
        for classes, domain in sorted(found)[:_SHOWN]
    }


def _least_work(placed: PlacedCluster, gang: WaitingGang, podgroup: int) -> dict[str, Any]:
    """The least lost work by class, the most important first, in the domain where it is least; exact."""
    known = fewest(placed, gang, podgroup)
    if all(one.work is None for one in known):
        return {}
    found = min((one.work[::-1], one.domain) for one in known if one.work is not None)
    classes = zip(reversed(PRIORITIES), found[0], strict=True)
    return {placed.names.domains[found[1]]: {qos: round(work, 4) for qos, work in classes if work}}


def _class(priority: int) -> str:
    return next(name for name, value in PRIORITIES.items() if value == priority)


# -- many at once ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wave:
    """Progress of event C: the state, pairs of victim and gang, and what it took."""

    snapshot: Snapshot
    victims: tuple[tuple[int, int], ...] = ()
    spent_ms: tuple[float, ...] = ()
    refused: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    rounds: int = 0


def _c(folder: Path, policy: Policy, priority: int | None) -> list[dict[str, Any]]:
    """Eleven gangs plan at once on one snapshot; then a leaf with nominations fails before a plan is judged."""
    value = 3 if priority is None else priority
    gangs = [WaitingGang(f"gang-{number:02}", 8, "asw", value) for number in range(_MANY)]
    placed = open_placed(folder, gangs)
    decide(placed.snapshot, policy, placed.gangs[0], _NOW)  # loads compiled code before the measurement
    first = settled(_Wave(placed.snapshot), policy, placed.gangs)
    leaf = _leaf_of(first.snapshot, placed.gangs)
    refusals = Counter(first.refused)
    row: dict[str, Any] = {"event": "C", "gang": f"{_MANY} of 8 x 8 GPUs, each in one asw", "priority": value}
    second = first
    if leaf is not None:
        lost = [group for group in placed.gangs if _inside(first.snapshot, group, leaf)]
        second = settled(_failed(first, policy, leaf, lost), policy, lost)
        refusals = Counter(second.refused)
        row |= {"failed_leaf": placed.names.domains[leaf], "gangs_hit": len(lost), "first_rounds": first.rounds}
    after = promises_kept(victims_gone(second.snapshot, _NOW), policy, _NOW)
    free = starting_freely(placed.snapshot, policy.match_policy)
    broken = [*second.broken, *broken_gangs(after, np.array(placed.gangs), free), *overfull(after)]
    whole = sum(len(placed_nodes(after, group)) == _minimum(after, group) for group in placed.gangs)
    row |= {"decision": f"{whole} of {_MANY} gangs placed", "rounds": second.rounds, "refused": dict(refusals)}
    row |= measured(placed, after, placed.gangs, second.victims)
    return [row | {"latency": percentiles(second.spent_ms), "broken": broken}]


def settled(wave: _Wave, policy: Policy, gangs: Sequence[int]) -> _Wave:
    """Plan for all waiting gangs on one snapshot, judge the plans one by one, and plan again for the refused ones.

    This is what parallel searchers and the committer do. A gang without a plan is not planned again.
    """
    waiting = list(gangs)
    while waiting and wave.rounds < _ROUNDS:
        base = wave.snapshot
        timed = [(group, decide(base, policy, group, _NOW)) for group in waiting]
        wave = replace(
            wave, rounds=wave.rounds + 1, spent_ms=wave.spent_ms + tuple(ms for _, one in timed for ms in one.spent_ms)
        )
        waiting = []
        for group, one in timed:
            wave, retry = _judged(wave, policy, one)
            if retry:
                waiting.append(group)
    return wave


def _judged(wave: _Wave, policy: Policy, timed: Timed) -> tuple[_Wave, bool]:
    """Commit a plan if it still holds; whether it must be planned again."""
    plan = timed.outcome
    if isinstance(plan, NoPlan):
        return replace(wave, refused=(*wave.refused, plan.explanation.reason.value)), False
    verdict = judge(plan, wave.snapshot, policy, _NOW)
    if not isinstance(verdict, Accepted):
        return replace(wave, refused=(*wave.refused, verdict.reason)), True
    made = verdict.statement
    return replace(
        wave,
        snapshot=carried_out(made, wave.snapshot, _NOW),
        victims=(*wave.victims, *((task, made.preemptor) for task in made.evictions.tolist())),
        broken=(*wave.broken, *broken_by(wave.snapshot, made, policy.match_policy)),
    ), False


def _leaf_of(snapshot: Snapshot, gangs: Sequence[int]) -> int | None:
    """The leaf that the first placed gang was promised."""
    nodes = next((nodes for group in gangs if len(nodes := placed_nodes(snapshot, group))), None)
    return None if nodes is None else snapshot.topology.lowest_common(nodes)


def _inside(snapshot: Snapshot, group: int, domain: int) -> bool:
    nodes, topology = placed_nodes(snapshot, group), snapshot.topology
    return bool(((nodes >= topology.start[domain]) & (nodes < topology.stop[domain])).any())


def _failed(wave: _Wave, policy: Policy, leaf: int, gangs: Sequence[int]) -> _Wave:
    """Remove all nodes of a leaf before an earlier plan for one of its gangs is judged."""
    nodes = np.arange(*wave.snapshot.topology.slice_of(leaf))
    withdrawn = _withdrawn(wave.snapshot, gangs)
    late = decide(withdrawn, policy, gangs[0], _NOW)
    left = Departures(
        frozen(nodes, np.int64),
        frozen(withdrawn.nodes.revision[nodes] + 1, np.int64),
        frozen(np.full(len(nodes), _NOW), np.float64),
    )
    failed = replace(wave, snapshot=fold(withdrawn, Changes(left=left)))
    gone, _ = _judged(failed, policy, late)
    kept = placed_nodes(gone.snapshot, gangs[0])
    if np.isin(kept, nodes).any():
        return replace(gone, broken=(*gone.broken, "a plan onto failed nodes was accepted"))
    return gone


def _withdrawn(snapshot: Snapshot, gangs: Sequence[int]) -> Snapshot:
    """The state without the nominations of ``gangs``."""
    rows = np.concatenate([snapshot.tasks_of(group) for group in gangs])
    rows = rows[snapshot.tasks.nominated[rows] != NONE]
    return WhatIf.of(snapshot).withdrawing(rows).whole
