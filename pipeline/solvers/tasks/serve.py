"""Making room task by task: Volcano's task-centric preempt and reclaim, with a retrofit.

The retrofit is that of "Gang-Aware Preemption and Reclaim", section 4.3.

Podgroups are served one after the other, and their tasks one after the other, each where it costs least by itself. Each
task is decided on the outcome of those before it. The places become a statement if the podgroup is pipelined with them,
else they are dropped. Only tasks of the minimum evict.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows, joined
from pipeline.cluster.resources import fits
from pipeline.cluster.rules.anti_affinity import concerns
from pipeline.cluster.rules.reaching import minimum_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Explanation, Reason
from pipeline.decision.plan import explained, making_room
from pipeline.decision.statement import Statement
from pipeline.placement.feasibility import asked, feasible, leftover
from pipeline.placement.refusal import refusal_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.tasks.kinds import Withheld
from pipeline.solvers.tasks.rule import Place, Rule
from pipeline.solvers.tasks.task_search import TaskSearch


def serve(host: Host, attempt: Attempt) -> tuple[Statement | None, Explanation]:
    """Make room for the tasks of podgroups that start together: the statement, if there is one, and why.

    Parameters
    ----------
    host
        Of the attempt's snapshot, policy and clock.
    """
    refused = refusal_of(attempt, host)
    if refused is not None:
        return None, explained(attempt, 0, refused)
    simulated = attempt.purpose is Purpose.PREEMPT and bool(
        attempt.policy.action_argument("preempt", "topology_aware", False)
    )
    rules = [Rule(attempt.purpose, attempt.podgroups, simulated=simulated)]
    if attempt.within_podgroup:
        rules.append(replace(rules[0], within_podgroup=True))
    tasks, missing = _in_order(host, attempt.podgroups)
    made = _made(host, attempt, rules, tasks, missing)
    request = attempt.snapshot.request_of(tasks[:missing])
    if (made is None or len(made.evictions)) and (request != request[:1]).any():
        other = _made(host, attempt, rules, _largest_first(attempt.snapshot, tasks, missing), missing)
        if other is not None and len(other.evictions) == 0:  # free room is used before any task goes
            made = other
    return made, explained(attempt, missing, Reason.UNPLACEABLE if made is None else Reason.CHOSEN)


def _made(host: Host, attempt: Attempt, rules: list[Rule], tasks: Rows, missing: int) -> Statement | None:
    """The statement for the tasks in their order, if the podgroups are pipelined with it."""
    places = _places(host, attempt, rules, tasks, missing) if len(tasks) else []
    if not places:
        return None
    made = _minimal(host, attempt, _statement(attempt, places))
    after = host.on(carried_out(made, attempt.snapshot, attempt.now), made.evictions)
    pipelined = bool(after.pipelined[list(attempt.podgroups)].all())
    return made if pipelined and feasible(attempt.snapshot, made) else None


def _largest_first(snapshot: Snapshot, tasks: Rows, missing: int) -> Rows:
    """The same tasks (int64[K]), those that the minima need by size: the largest part of a node that each takes."""
    largest = np.maximum(snapshot.nodes.allocatable.max(axis=0, initial=1), 1)
    size = (snapshot.request_of(tasks[:missing]) / largest).max(axis=1)
    return np.concatenate([tasks[:missing][np.argsort(-size, kind="stable")], tasks[missing:]])


def lawful(host: Host, preemptor: Preemptor, victims: Rows) -> bool:
    """Whether the preemptor's queue may take its request once the victims (int64[V]) have gone."""
    snapshot = host.context.snapshot
    left = host.on(WhatIf.of(snapshot).evicting(victims), victims).headroom
    return bool(fits(preemptor.request, left[snapshot.podgroups.queue[preemptor.podgroups[0]]]))


def _in_order(host: Host, podgroups: tuple[int, ...]) -> tuple[Rows, int]:
    """The pending tasks (int64[K]), those that the minima need first, then in task order; how many the minima need."""
    snapshot, leads, others = host.context.snapshot, [NO_ROWS], [NO_ROWS]
    for podgroup in podgroups:
        rows = snapshot.pending(podgroup)
        rows = rows[np.argsort(host.task_ranks(rows), kind="stable")]
        leading, _ = minimum_of(snapshot, podgroup, rows)
        leads.append(rows[leading])
        others.append(rows[~leading])
    return np.concatenate(leads + others), sum(map(len, leads))


def _places(host: Host, attempt: Attempt, rules: list[Rule], tasks: Rows, missing: int) -> list[Place]:
    """A place for one task after the other until none starves; no places if a required level cannot be kept.

    With a required level, a task without a place would leave the gang torn apart or short, so the podgroup waits for
    another cycle (fail-fast, section 4.3.2).
    """
    places, at, withheld = list[Place](), 0, Withheld(len(attempt.snapshot.nodes))
    search = TaskSearch(host, attempt, rules, tasks, missing, withheld)
    while at < len(tasks) and search.starving():
        last = at + search.ahead(at)
        if not search.find(at, last):
            return []
        at = last
        if search.changes_candidates and (found := search.places()):
            places += found
            made = _statement(attempt, found)  # evictions are charged to budgets as well
            host = host.on(carried_out(made, host.context.snapshot, attempt.now), made.evictions)
            search = TaskSearch(host, attempt, rules, tasks, missing, withheld)
    return places + search.places()


def _minimal(host: Host, attempt: Attempt, made: Statement) -> Statement:
    """The statement without victims that later victims made unnecessary, the highest priority reprieved first.

    Where anti-affinity concerns the tasks, all victims go, since it was checked task by task.
    """
    snapshot, placed = attempt.snapshot, made.placed
    if len(made.evictions) <= 1 or concerns(snapshot, placed):  # a single victim is needed
        return made
    spare = made.evictions[_spare(snapshot, made)]
    if len(spare) == 0:
        return made
    request = snapshot.request_of(placed).sum(axis=0)
    preemptor = Preemptor(attempt.podgroups, request, attempt.purpose)
    roomy = lawful(host, preemptor, NO_ROWS)
    rank = host.job_rank[snapshot.tasks.podgroup[spare]], host.task_ranks(spare)
    for row in spare[np.lexsort(rank[::-1])].tolist():
        fewer = made.evicting_only(made.evictions[made.evictions != row])
        if feasible(snapshot, fewer) and (roomy or lawful(host, preemptor, fewer.evictions)):
            made = fewer
    return made


def _spare(snapshot: Snapshot, made: Statement) -> Bools:
    """bool[V]: victims without which their nodes have room for what is placed there; each by itself."""
    left = leftover(snapshot, made, made.places)
    at = np.searchsorted(left.node, snapshot.tasks.node[made.evictions])
    held = asked(snapshot, made.evictions, snapshot.tasks.card[made.evictions])
    return np.asarray(((left.room[at] >= held) | (left.placed[at] == 0)).all(axis=1))


def _statement(attempt: Attempt, places: list[Place]) -> Statement:
    """Evictions, nominations and withdrawn nominations of all places together."""
    released = joined(place.released for place in places)
    return making_room(
        attempt,
        joined(place.victims for place in places),
        np.concatenate([np.array([place.task for place in places], np.int64), released]),
        np.array([place.node for place in places] + [NONE] * len(released), np.int64),
        np.array([place.card for place in places] + [NONE] * len(released), np.int64),
    )
