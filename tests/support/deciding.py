"""What cycles decide, statement by statement, and plain-Python answers to the questions that the invariants ask."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from actors.cli.simulate import Case, answered, compact, open_case
from pipeline.actions.registry import actions_of
from pipeline.cluster.arrays import NONE, UNSET
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cycle import Cycle, cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Explanation, Reason
from pipeline.decision.plan import Plan
from pipeline.decision.statement import Statement
from pipeline.placement.serving_order import in_serving_order
from pipeline.policy import Purpose
from pipeline.propose import host_of, propose

_PODS = 2


@dataclass(frozen=True)
class Step:
    """One statement: the snapshots around it, and why it was made if it evicts."""

    case: Case
    before: Snapshot
    made: Statement
    after: Snapshot
    why: Explanation | None


def run(document: dict[str, Any], cycles: int = 1) -> Iterator[tuple[Case, Snapshot, Cycle]]:
    """Every cycle over the cluster file, the simulated fleet's answers in between."""
    history = _history(compact(document))
    for at in range(cycles):
        yield history.cycle(at)


def again(case: Case, before: Snapshot, done: Cycle, after: Snapshot) -> Cycle:
    """What a cycle decides after one that was ``done`` on ``before``: the same once more if nothing has changed."""
    return done if after is before else cycle(after, case.policy, case.now)


class History:
    """The cycles over one cluster file, each decided once, whichever tests look at it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._case, self._cycles = open_case(document), list[tuple[Snapshot, Cycle]]()
        self._steps: dict[int, list[Step]] = {}

    def cycle(self, at: int) -> tuple[Case, Snapshot, Cycle]:
        """The case, and snapshot and outcome of a cycle."""
        case = self._case
        while len(self._cycles) <= at:
            if self._cycles:
                before, done = self._cycles[-1]
                after = answered(done, case.now)
                self._cycles.append((after, again(case, before, done, after)))
            else:
                self._cycles.append((case.snapshot, cycle(case.snapshot, case.policy, case.now)))
        return case, *self._cycles[at]

    def steps(self, at: int) -> list[Step]:
        """The statements of a cycle."""
        if at not in self._steps:
            case, before, done = self.cycle(at)
            made, chosen = [], iter([why for why in done.explanations if why.reason is Reason.CHOSEN])
            for one in done.statements:
                after = carried_out(one, before, 0.0)
                why = next(chosen) if one.action in ("preempt", "reclaim") else None
                made.append(Step(case, before, one, after, why))
                before = after
            self._steps[at] = made
        return self._steps[at]


@lru_cache(maxsize=256)
def _history(document: str) -> History:
    return History(json.loads(document))


def steps(document: dict[str, Any], cycles: int = 1) -> Iterator[Step]:
    """Every statement of every cycle."""
    history = _history(compact(document))
    for at in range(cycles):
        yield from history.steps(at)


def evicting(document: dict[str, Any], cycles: int = 1) -> Iterator[Step]:
    """The statements that evict."""
    return (step for step in steps(document, cycles) if len(step.made.evictions))


def plans(document: dict[str, Any]) -> tuple[Any, list[tuple[Attempt, Plan]]]:
    """What every starving podgroup would do on the same snapshot, each alone."""
    return _plans(compact(document))


@lru_cache(maxsize=256)
def _plans(document: str) -> tuple[Any, list[tuple[Attempt, Plan]]]:
    case = open_case(json.loads(document))
    host = host_of(Attempt(case.snapshot, case.policy, Purpose.PREEMPT, (), None, case.now, "preempt"))
    found = []
    actions = [action for action in actions_of(case.policy.actions) if action.makes_room]
    for unit in in_serving_order(host, host.starving & host.valid):
        for action in actions:
            attempt = Attempt(case.snapshot, case.policy, action.purpose, unit, None, case.now, action.name)
            outcome = propose(attempt, host)
            if isinstance(outcome, Plan):
                found.append((attempt, outcome))
    return case, found


def columns(state: Any) -> Iterator[np.ndarray]:
    """Every array of a snapshot."""
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            yield value
        elif is_dataclass(value):
            yield from columns(value)


# -- who counts --------------------------------------------------------------------------------------------------------


def request(snapshot: Snapshot, row: int) -> np.ndarray:
    return snapshot.shapes.request[snapshot.tasks.shape[row]]


def members(snapshot: Snapshot, podgroup: int) -> list[int]:
    return [row for row in range(len(snapshot.tasks)) if snapshot.tasks.podgroup[row] == podgroup]


def runs(snapshot: Snapshot, row: int) -> bool:
    return int(snapshot.tasks.status[row]) in {BOUND, RUNNING}


def place(snapshot: Snapshot, row: int) -> int:
    """The node that a task holds or was promised, as one that waits or moves; NONE if neither."""
    tasks = snapshot.tasks
    if runs(snapshot, row):
        return int(tasks.node[row])
    return int(tasks.nominated[row]) if tasks.status[row] in {PENDING, TERMINATING} else NONE


def short_of(snapshot: Snapshot, podgroup: int, *, promised: bool = True) -> str | None:
    """What the podgroup lacks to run whole: its minimum, a role's, or subgroups; None if nothing."""
    tasks, groups = snapshot.tasks, snapshot.podgroups

    def counts(row: int) -> bool:
        free = bool(tasks.best_effort[row] and tasks.status[row] == PENDING and promised)
        here = place(snapshot, row) != NONE if promised else runs(snapshot, row)
        return here or tasks.status[row] == SUCCEEDED or free

    have = [row for row in members(snapshot, podgroup) if counts(row)]
    if len(have) < groups.min_available[podgroup]:
        return "minimum"
    roles = [row for row in range(len(snapshot.roles)) if snapshot.roles.podgroup[row] == podgroup]
    least = {row: int(snapshot.roles.min_available[row]) for row in roles}
    if groups.min_available[podgroup] >= sum(least.values()) and any(
        sum(tasks.role[row] == role for row in have) < wanted for role, wanted in least.items()
    ):
        return "role"
    return None if _enough_subgroups(snapshot, podgroup, have) else "subgroup"


def _enough_subgroups(snapshot: Snapshot, podgroup: int, have: list[int]) -> bool:
    table = snapshot.subgroups
    parts = [row for row in range(len(table)) if table.podgroup[row] == podgroup]
    whole = [
        sum(int(snapshot.tasks.subgroup[row]) == part for row in have) >= table.min_available[part] for part in parts
    ]
    wanted = int(snapshot.podgroups.min_subgroups[podgroup])
    return sum(whole) >= (len(parts) if wanted == NONE else wanted)


def unit_of(snapshot: Snapshot, podgroup: int) -> list[int]:
    """The podgroups that start together with this one."""
    groups, lists = snapshot.podgroups, snapshot.vocabulary.gang_groups
    row_of = {int(gang): row for row, gang in enumerate(groups.gang) if gang != NONE and groups.alive[row]}
    found, todo = {podgroup}, [podgroup]
    while todo:
        number = groups.gang_group[todo.pop()]
        named = [] if number == NONE else [row_of[gang] for gang in lists[number] if gang in row_of]
        todo += [row for row in named if row not in found]
        found.update(named)
    return sorted(found)


# -- room --------------------------------------------------------------------------------------------------------------


def overfull(snapshot: Snapshot) -> list[str]:
    """Nodes that hold more than they have, or were promised more than they will have."""
    tasks, found = snapshot.tasks, []
    for node in range(len(snapshot.nodes)):
        holds = [row for row in range(len(tasks)) if tasks.node[row] == node and _holds(tasks.status[row])]
        stays = [row for row in holds if tasks.status[row] != TERMINATING]
        comes = [row for row in range(len(tasks)) if tasks.status[row] == PENDING and tasks.nominated[row] == node]
        allocatable = snapshot.nodes.allocatable[node]
        if (_sum(snapshot, holds) > allocatable).any():
            found.append(f"node {node} holds too much")
        if (_sum(snapshot, [*stays, *comes]) > allocatable).any():
            found.append(f"node {node} was promised too much")
    return found


def _holds(status: int) -> bool:
    return int(status) in {BOUND, RUNNING, TERMINATING}


def _sum(snapshot: Snapshot, rows: Iterable[int]) -> np.ndarray:
    total = np.zeros(len(snapshot.vocabulary.resources), np.int64)
    for row in rows:
        total += request(snapshot, row)
    return total


def can_lie(snapshot: Snapshot, rows: list[int], domain: int, gone: set[int]) -> bool:
    """Whether some layout puts all of ``rows`` on the domain's nodes once ``gone`` have left: every one is tried."""
    first, last = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
    future = snapshot.room.future.copy()
    for row in gone:
        future[snapshot.tasks.node[row]] += request(snapshot, row)
    for row in rows:  # what they were promised before falls away
        if snapshot.tasks.nominated[row] != NONE:
            future[snapshot.tasks.nominated[row]] += request(snapshot, row)
    open_to = [node for node in range(first, last) if snapshot.nodes.schedulable[node]]
    return any(
        _lies(snapshot, rows, nodes, future) and not torn(snapshot, dict(zip(rows, nodes, strict=True)))
        for nodes in product(open_to, repeat=len(rows))
    )


def _lies(snapshot: Snapshot, rows: list[int], nodes: tuple[int, ...], future: np.ndarray) -> bool:
    for node in set(nodes):
        asked = _sum(snapshot, (row for row, at in zip(rows, nodes, strict=True) if at == node))
        if ((asked > future[node]) & (asked > 0)).any():
            return False
    return True


# -- topology ----------------------------------------------------------------------------------------------------------


def torn(snapshot: Snapshot, moved: dict[int, int] | None = None) -> set[str]:
    """Podgroups and subgroups that hold or were promised nodes outside one domain of their required level.

    ``moved``: nodes of some tasks as they would be.
    """
    found = set()
    for podgroup in range(len(snapshot.podgroups)):
        level = int(snapshot.podgroups.required_level[podgroup])
        if not _together(snapshot, members(snapshot, podgroup), level, moved or {}):
            found.add(f"podgroup {podgroup}")
    for part in range(len(snapshot.subgroups)):
        rows = [row for row in range(len(snapshot.tasks)) if snapshot.tasks.subgroup[row] == part]
        if not _together(snapshot, rows, int(snapshot.subgroups.required_level[part]), moved or {}):
            found.add(f"subgroup {part}")
    return found


def _together(snapshot: Snapshot, rows: list[int], level: int, moved: dict[int, int]) -> bool:
    nodes = {moved.get(row, place(snapshot, row)) for row in rows} - {NONE}
    if level == NONE or not nodes:
        return True
    topology = snapshot.topology
    return any(
        all(topology.start[domain] <= node < topology.stop[domain] for node in nodes)
        for domain in range(len(topology))
        if topology.level[domain] == level
    )


# -- quota -------------------------------------------------------------------------------------------------------------


def shortchanged(snapshot: Snapshot, made: Statement) -> list[str]:
    """Queues that lose some of a resource of which they then hold less than they deserve, resource by resource."""
    queues, found = snapshot.queues, []
    own = set(chain_of(snapshot, int(snapshot.podgroups.queue[made.preemptor])))
    for queue in range(len(queues)):
        if queue in own:
            continue
        lost = _sum(snapshot, (row for row in made.evictions.tolist() if queue in _chain(snapshot, row)))
        left = _sum(snapshot, (row for row in range(len(snapshot.tasks)) if _held(snapshot, row, queue))) - lost
        for r in range(len(lost)):
            stated = int(queues.deserved[queue, r])
            least = max(0 if stated == UNSET else stated, int(queues.guarantee[queue, r]))
            if r != _PODS and lost[r] > 0 and left[r] < least:
                found.append(f"queue {queue} keeps {left[r]} of {least} {snapshot.vocabulary.resources[r]}")
    return found


def chain_of(snapshot: Snapshot, queue: int) -> list[int]:
    found = [queue]
    while snapshot.queues.parent[found[-1]] != NONE:
        found.append(int(snapshot.queues.parent[found[-1]]))
    return found


def _chain(snapshot: Snapshot, row: int) -> list[int]:
    return chain_of(snapshot, int(snapshot.podgroups.queue[snapshot.tasks.podgroup[row]]))


def _held(snapshot: Snapshot, row: int, queue: int) -> bool:
    return place(snapshot, row) != NONE and queue in _chain(snapshot, row)
