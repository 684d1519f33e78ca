"""Redeem: a promised task starts once its room is there, and only where all that was asked for the promise still holds.

Volcano forgets what it has pipelined from one session to the next, and kube-scheduler treats a nominated node as a
hint. Here a promise is kept, so it must also be able to end. One that cannot be kept any more is given up at once, and
the gang is placed anew in the same decision: its node does not take the task any more, its room was taken for good, the
gang would be torn apart, or its queue may not take it. So is one whose room a podgroup would take that may evict its
tasks (`holding_back`); a gang that is held back is not placed anew before all others have had their turn.
"""

from itertools import chain

import numpy as np

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NO_ROWS, NONE, Bools, Rows, any_true, joined, mask_of
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.rules.match_policy import start_after, to_start
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.rules.minimum import has_minimum, starts_with
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.explanation import Reason
from pipeline.decision.statement import Statement, statement, taking_back
from pipeline.placement.filters import too_early
from pipeline.placement.need import task_order
from pipeline.placement.promises import fitting, kept
from pipeline.placement.serving_order import in_serving_order
from pipeline.plugins.host import Host
from pipeline.solvers.registry import placer_of, unkept


def redeem(progress: Progress) -> Progress:
    """Bind promised tasks whose room is there, a gang's only when it can start with them; give up broken promises."""
    snapshot = progress.snapshot
    promised = _holds_promise(snapshot)
    if not promised.any():
        return progress
    host = progress.host
    holders = mask_of(snapshot.tasks.podgroup[promised], len(snapshot.podgroups))
    rows_of = {one: _promised_of(snapshot, one) for one in in_serving_order(host, holders)}
    broken = _broken(progress, np.concatenate(list(rows_of.values())), host)
    for gang_group, rows in rows_of.items():
        if broken[rows].any():  # another promise may take its room: looked at again, after those before it
            broken[rows] = _broken(progress, rows, host, besides=promised)[rows]
        promised[rows] = False
        gives_up = not progress.held_back.promises.isdisjoint(gang_group)
        if broken[rows].any():
            lost, anew = rows[broken[rows]], not gives_up and progress.held_back.podgroups.isdisjoint(gang_group)
            progress = _anew(progress, gang_group, rows, lost) if anew else _given_up(progress, gang_group, lost)
        there = _startable(progress, gang_group, binding=host.binding)
        if len(there):
            progress = (_given_up if gives_up else _started)(progress, gang_group, there)
    return progress


def _holds_promise(snapshot: Snapshot) -> Bools:
    """bool[T]: tasks that wait for a node that they were promised."""
    result = np.zeros(len(snapshot.tasks), bool)
    rows = snapshot.tasks_of_all(snapshot.counts.waiting.nonzero()[0])[0]
    result[rows] = snapshot.tasks.waits(rows, promised=True)
    return result


def _promised_of(snapshot: Snapshot, gang_group: GangGroup) -> Rows:
    """int64[K]: the promised tasks of a gang group, those of each podgroup in the order in which they are placed."""
    mine, tasks = [snapshot.tasks_of(podgroup) for podgroup in gang_group], snapshot.tasks
    return np.concatenate([task_order(snapshot, rows[tasks.waits(rows, promised=True)]) for rows in mine])


def _startable(progress: Progress, gang_group: GangGroup, *, binding: bool) -> Rows:
    """int64[K]: those whose room is idle; none where the gang cannot start with them yet."""
    snapshot = progress.snapshot
    promised = _promised_of(snapshot, gang_group)
    idle = _idle(snapshot, promised)
    rows, rest = promised[idle], promised[~idle]
    if len(rows) == 0 or (binding and not _may_start(progress, gang_group, rows)):
        return NO_ROWS
    if len(rest) and not start_after(snapshot, progress.policy.match_policy, gang_group, rows, rest):
        return NO_ROWS
    return rows


def _started(progress: Progress, gang_group: GangGroup, rows: Rows) -> Progress:
    """Bind promised tasks where their room is."""
    node, card = progress.snapshot.tasks.promised(rows)
    return progress.decided(statement("allocate", gang_group[0], bound=rows, bound_node=node, bound_card=card))


def _given_up(progress: Progress, gang_group: GangGroup, rows: Rows) -> Progress:
    """Withdraw promises."""
    return progress.decided(taking_back(_nothing(gang_group), rows))


def _may_start(progress: Progress, gang_group: GangGroup, rows: Rows) -> bool:
    snapshot = to_start(progress.snapshot, progress.policy)
    return all(starts_with(snapshot, podgroup, rows) for podgroup in gang_group)


def _idle(snapshot: Snapshot, rows: Rows) -> Bools:
    """bool[K]: promised tasks whose room is there by now, and beside which no task ends that anti-affinity names."""
    result = ~too_early(snapshot, rows, snapshot.tasks.nominated[rows].astype(np.int64), NO_ROWS)
    free = rows[result]
    result[result] = fitting(
        snapshot, free, *snapshot.tasks.promised(free), snapshot.room.idle, snapshot.card_room.idle
    )
    return result


# -- promises that cannot be kept --------------------------------------------------------------------------------------


def _broken(progress: Progress, rows: Rows, host: Host, besides: Bools | None = None) -> Bools:
    """bool[T]: which of the promised tasks ``rows``, in this order, would not be promised their nodes today.

    Parameters
    ----------
    besides: bool[T]
        Promises that do not count, those of ``rows`` included. None where ``rows`` are all promised tasks; then
        ceilings that several queues share are checked as well.
    """
    snapshot = progress.snapshot
    result = np.zeros(len(snapshot.tasks), bool)
    nodes, cards = snapshot.tasks.promised(rows)
    without = rows if besides is None else np.flatnonzero(besides)
    free = progress.without_promises(without)
    wrong = ~kept(free, rows, nodes, cards)
    if besides is None:  # queues that share an ancestor's ceiling can only be judged together
        queue, asks = snapshot.queue_of(rows), snapshot.request_of(rows)
        wrong |= ((asks > 0) & (host.headroom[queue] < 0)).any(axis=1)
    wrong |= unkept(progress.policy, snapshot, rows, nodes)
    result[rows[wrong | snapshot.tasks.gated[rows]]] = True
    return result


def _anew(progress: Progress, gang_group: GangGroup, rows: Rows, broken: Rows) -> Progress:
    """Place a gang group anew, in one decision, where some of its promises cannot be kept.

    First the promises that can be kept stay as they are, then all are given up. If neither works without an eviction,
    only the broken ones are given up, and the actions that evict search with the others in place.
    """
    for given_up in (broken, rows):
        host = progress.without_promises(given_up)
        made = placer_of(progress.policy)(host, gang_group, "allocate")
        if made is None and not all(has_minimum(host.to_start, row, NONE, given_up[:0]) for row in gang_group):
            continue
        return progress.decided(taking_back(made or _nothing(gang_group), given_up))
    return _given_up(progress, gang_group, broken)


def _nothing(gang_group: GangGroup) -> Statement:
    return statement("allocate", gang_group[0])


def release(progress: Progress, begun: Snapshot, *, evicting: bool) -> Progress:
    """Withdraw the promises of gang groups that are still below their minimum after every action: they lead nowhere.

    Parameters
    ----------
    begun
        The snapshot on which the cycle began.
    evicting
        Whether the policy has actions that evict: then only gang groups for which all of them found no plan, and those
        that they evicted from.
    """
    # A gang group that waits for the victims of an earlier decision only has to wait.
    waits = {one.gang_group for one in progress.unplaced if one.found.explanation.reason is Reason.ENDING}
    without_plan = {one.gang_group for one in progress.unplaced} - waits - progress.served
    evicted = joined(one.evictions for one in progress.statements)
    victims = set(begun.tasks.podgroup[evicted].tolist())
    if evicting and not _may_wait(progress, begun, [*victims, *chain.from_iterable(without_plan)]):  # as it mostly is
        return progress
    snapshot = progress.snapshot
    promised = _holds_promise(snapshot)
    if not promised.any():
        return progress
    whole = minima_met(to_start(snapshot, progress.policy)).pipelined
    holders = mask_of(snapshot.tasks.podgroup[promised], len(snapshot.podgroups))
    torn = holders & (~whole | (snapshot.podgroups.gang_group != NONE))
    if not torn.any():
        return progress
    for gang_group in in_serving_order(progress.host, torn):
        if whole[list(gang_group)].all():
            continue
        if not evicting or gang_group in without_plan or victims.intersection(gang_group):
            progress = _given_up(progress, gang_group, _promised_of(snapshot, gang_group))
    return progress


def _may_wait(progress: Progress, begun: Snapshot, podgroups: list[int]) -> bool:
    """Whether any of the podgroups, or of those that start together with them, may have tasks with a promise.

    It may if it had some when the cycle began, or was given some since.
    """
    promised = joined(made.nominated for made in progress.statements)
    waiting = {*begun.counts.waiting.nonzero()[0].tolist(), *begun.tasks.podgroup[promised].tolist()}
    listed = begun.podgroups.gang_group[list(waiting)] != NONE
    return len(podgroups) > 0 and (not waiting.isdisjoint(podgroups) or any_true(listed))
