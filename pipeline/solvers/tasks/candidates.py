"""Which tasks may be victims of a waiting task, each judged alone, and in which order they go."""

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.cluster.orders import comparable
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.solvers.tasks.rule import Rule
from pipeline.solvers.tasks.sweeping.victim_order import VictimOrder, in_victim_order


def preemptor_of(host: Host, task: int, rule: Rule) -> Preemptor:
    """The task as plugins know it."""
    snapshot = host.context.snapshot
    return Preemptor(rule.podgroups, snapshot.shapes.request[snapshot.tasks.shape[task]], rule.purpose, task)


def candidate_mask(host: Host, task: int, rule: Rule) -> Bools:
    """bool[T]: candidates, each judged alone, as far as ``may_take_from_others`` says."""
    snapshot = host.context.snapshot
    tasks, groups = snapshot.tasks, snapshot.podgroups
    if not tasks.may_preempt[task]:
        return np.zeros(len(tasks), bool)
    owner, queue = int(tasks.podgroup[task]), groups.queue[tasks.podgroup[task]]
    from_groups = np.zeros(len(groups), bool)
    if rule.within_podgroup:
        from_groups[owner] = True
    else:
        mine = groups.queue == queue
        others = ~mine & snapshot.queues.reclaimable[groups.queue]
        from_groups = groups.alive & (mine if rule.purpose is Purpose.PREEMPT else others)
        from_groups[list(rule.podgroups)] = False  # a gang group takes nothing from its own podgroups
    may = host.task_candidates(preemptor_of(host, task, rule), from_groups, rule.point)
    if rule.within_podgroup:
        may &= tasks.priority < tasks.priority[task]
    if tasks.best_effort[task]:  # a task that asks for nothing takes nothing but a pod
        may &= tasks.best_effort
    return may


def may_take_from_others(host: Host, preemptor: Preemptor) -> bool:
    """Whether the preemptor's queue may take from others: in preempt it takes from itself."""
    return preemptor.purpose is Purpose.PREEMPT or host.preemptive(preemptor)


def releasable(host: Host, task: int, rule: Rule) -> Rows:
    """int64[W]: tasks that lose their nominations in a simulation, of lower priority in the same queue."""
    snapshot, tasks = host.context.snapshot, host.context.snapshot.tasks
    groups, mine = snapshot.podgroups, tasks.podgroup[task]
    lower = (groups.queue == groups.queue[mine]) & (groups.priority < groups.priority[mine])
    may = rule.simulated & tasks.may_preempt[task]
    return np.flatnonzero(tasks.waits(slice(None), promised=True) & lower[tasks.podgroup] & may)


def victim_order(host: Host) -> VictimOrder:
    """The order of victims in which no queue comes before another; its ``jobs`` may be written."""
    snapshot = host.context.snapshot
    tasks = np.stack([comparable(key) for key in host.task_keys(np.arange(len(snapshot.tasks)))])
    jobs = np.stack(
        [comparable(key) for key in (*(one.job_order() for one in host.job_orders), snapshot.podgroups.order)]
    )
    ranks = np.zeros(len(snapshot.queues), np.int64)
    return VictimOrder(ranks, jobs, tasks, snapshot.tasks.node, snapshot.tasks.podgroup, snapshot.podgroups.queue)


def queue_ranks(host: Host, queue: int, purpose: Purpose) -> Longs:
    """int64[Q]: from which queue to take first for a task of ``queue``."""
    ranks = host.victim_queue_rank(queue)
    return ranks if purpose is Purpose.RECLAIM else np.zeros_like(ranks)


def candidates(host: Host, task: int, rule: Rule, among: Rows) -> Rows:
    """int64[C]: the candidates among some tasks, by node, and in victim order on each node."""
    if not may_take_from_others(host, preemptor_of(host, task, rule)):
        return among[:0]
    queue = int(host.context.snapshot.queue_of(np.array([task]))[0])
    order = victim_order(host)._replace(queue_rank=queue_ranks(host, queue, rule.purpose))
    return in_victim_order(order, among[candidate_mask(host, task, rule)[among]])
