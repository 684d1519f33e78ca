"""What holds of the task-centric actions on any small cluster."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.actions.progress import Progress
from pipeline.cluster.arrays import NONE, Bools, frozen
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.decided import carried_out
from pipeline.placement.feasibility import feasible
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.plugins.proportion import Proportion
from pipeline.plugins.victim_host import VictimHost
from pipeline.policy import PluginSetting
from pipeline.solvers.tasks import serve
from pipeline.solvers.tasks.kinds import Withheld
from pipeline.solvers.tasks.rule import Rule
from tests.support.builders import Gang, Task, cluster
from tests.support.editing import with_budget, with_queues
from tests.support.task_centric import USUAL, pinned_nodes, policy, preempted, reclaimed
from tests.support.twins import uncompiled

NODES = 4
running = st.builds(
    Task, node=st.integers(0, NODES - 1), cpu=st.integers(1, 3), memory=st.integers(0, 2),
    priority=st.integers(0, 3) | st.none(), created=st.sampled_from([0.0, 1.0]),
    preemptible=st.integers(0, 4).map(bool),
)  # fmt: skip
waiting = st.builds(Task, cpu=st.integers(1, 4), memory=st.integers(0, 3), priority=st.integers(0, 5) | st.none())


@st.composite
def clusters(draw: st.DrawFn, level: int | None = None) -> Snapshot:
    """Two to four running podgroups and one or two that wait, in two queues, on two racks filled to what runs."""
    queue, required = st.integers(0, 1), st.sampled_from([NONE, 0]) if level is None else st.just(level)
    low = draw(st.lists(st.builds(
        Gang, st.lists(running, min_size=2, max_size=4), st.integers(0, 3), st.integers(0, 3), queue),
        min_size=2, max_size=4,
    ))  # fmt: skip
    high = draw(st.lists(st.builds(
        Gang, st.lists(waiting, min_size=1, max_size=4), st.integers(0, 4), st.integers(1, 5), queue,
        required_level=required), min_size=1, max_size=2,
    ))  # fmt: skip
    free = draw(st.sampled_from([0, 0, 0, 1, 2]))
    used = np.zeros((NODES, 2), int)
    for task in (task for one in low for task in one.tasks):
        used[task.node] += task.cpu, task.memory
    nodes = [{"cpu": int(cpu) + free, "memory": int(memory) + free} for cpu, memory in used]
    return cluster(nodes, [*low, *high], racks=(2, 2))


def steps(before: Snapshot, made: Progress) -> list[tuple[Snapshot, Snapshot]]:
    """The snapshots before and after each statement."""
    found = []
    for one in made.statements:
        after = carried_out(one, before, 0.0)
        found.append((before, after))
        before = after
    return found


@given(clusters(), st.booleans(), st.booleans())
def test_preempt_makes_the_room_that_it_promises_from_less_important_work_only(
    state: Snapshot, protected: bool, simulated: bool
) -> None:
    gangs = PluginSetting("gang", (("*", True), ("preemptable", protected)))
    chosen = policy(["priority", gangs, "predicates", "network-topology-aware"], topology_aware=simulated)
    made = preempted(state, chosen)
    for statement, (before, after) in zip(made.statements, steps(state, made), strict=True):
        tasks, groups = before.tasks, before.podgroups
        rows, owner = statement.evictions, before.tasks.podgroup[statement.evictions]
        assert feasible(before, statement)
        assert Host(Context(after, chosen, 0.0)).pipelined[statement.preemptor]
        assert tasks.preemptible[rows].all()
        assert (groups.queue[owner] == groups.queue[statement.preemptor]).all()
        others = owner != statement.preemptor
        assert (groups.priority[owner[others]] < groups.priority[statement.preemptor]).all()
        if protected:
            assert (after.counts.ready >= groups.min_available)[owner].all()
        for row in rows:  # minimal: nobody goes for nothing
            fewer = replace(statement, evictions=frozen(rows[rows != row], np.int64))
            assert not feasible(before, fewer)


@given(clusters(level=0), st.booleans())
def test_a_gang_with_a_required_level_ends_in_one_domain(state: Snapshot, simulated: bool) -> None:
    for made in (preempted(state, policy(topology_aware=simulated)), reclaimed(state)):
        for podgroup in np.flatnonzero(state.podgroups.required_level != NONE).tolist():
            assert len({node // 2 for node in pinned_nodes(made.snapshot, podgroup)}) <= 1


@given(clusters())
def test_reclaim_takes_only_from_a_queue_that_holds_more_than_it_deserves(state: Snapshot) -> None:
    chosen = policy(["gang", "proportion", "predicates", "network-topology-aware"])
    made = reclaimed(state, chosen)
    for statement, (before, after) in zip(made.statements, steps(state, made), strict=True):
        share = Proportion(Context(before, chosen, 0.0), PluginSetting("proportion")).fair_share()
        own = before.podgroups.queue[statement.preemptor]
        for queue in set(before.queue_of(statement.evictions).tolist()):
            assert queue != own
            assert (before.allocated_here[queue] > share[queue]).any()
        assert feasible(before, statement)
        assert Host(Context(after, chosen, 0.0)).pipelined[statement.preemptor]


@given(clusters(), st.integers(6, 20))
def test_a_queue_is_never_filled_beyond_its_ceiling(state: Snapshot, capability: int) -> None:
    limited = with_queues(state, capability=capability)
    made = preempted(limited, policy([*USUAL, "capacity"]))
    for before, after in steps(limited, made):
        grew = after.allocated_here[:, 0] > before.allocated_here[:, 0]
        assert (after.allocated_here[grew, 0] <= capability).all()


@given(clusters(), st.booleans())
def test_the_same_cluster_gets_the_same_statements_and_then_no_more(state: Snapshot, simulated: bool) -> None:
    chosen = policy(topology_aware=simulated)
    first, second = preempted(state, chosen), preempted(state, chosen)
    assert [one.evictions.tolist() for one in first.statements] == [one.evictions.tolist() for one in second.statements]
    assert not [one for one in preempted(first.snapshot, chosen).statements if len(one.evictions)]


class Forgetful(Withheld):
    """Has every search ask the plugins about every node."""

    def of(self, host: Host, task: int, rule: Rule) -> Bools:  # noqa: ARG002 - as the one that remembers
        return np.zeros(len(host.context.snapshot.nodes), bool)


@given(clusters(), st.booleans(), st.sampled_from([(), ("proportion",), ("drf", "capacity"), ("drf", "proportion")]))
def test_what_is_remembered_of_nodes_changes_no_decision(
    state: Snapshot, simulated: bool, more: tuple[str, ...]
) -> None:
    chosen = policy([*USUAL, *more], topology_aware=simulated)
    for run in (preempted, reclaimed):
        remembered = run(state, chosen)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(serve, "Withheld", Forgetful)
            asked_anew = run(state, chosen)
        assert statements(remembered) == statements(asked_anew)


@st.composite
def guarded(draw: st.DrawFn) -> Snapshot:
    """Two full nodes with small tasks that mostly may go, a budget for some of them, and queues that are limited.

    Running gangs may have two roles and two subgroups.
    """
    queue, cpu, part = st.integers(0, 1), st.integers(1, 2), st.sampled_from([NONE, 0, 1])
    small = {
        "node": st.integers(0, 1),
        "cpu": cpu,
        "priority": st.integers(0, 3),
        "created": st.sampled_from([0.0, 1.0]),
    }
    plain, parted = st.builds(Task, **small), st.builds(Task, **small, role=part, subgroup=part)
    parts = st.tuples(st.just(NONE), st.integers(0, 2), st.just(NONE))
    running_gang = st.builds(
        Gang, st.lists(plain, min_size=1, max_size=4), st.integers(0, 2), st.integers(0, 3), queue
    ) | st.builds(
        Gang, st.lists(parted, min_size=1, max_size=5), st.integers(0, 3), st.integers(0, 3), queue,
        roles=st.tuples(st.integers(0, 2), st.integers(0, 2)), subgroups=st.lists(parts, min_size=2, max_size=2),
        min_subgroups=st.sampled_from([NONE, 0, 1]),
    )  # fmt: skip
    low = draw(st.lists(running_gang, min_size=1, max_size=3))
    asking = st.lists(st.builds(Task, cpu=cpu, priority=st.integers(2, 5)), min_size=1, max_size=3)
    high = draw(st.lists(st.builds(Gang, asking, st.integers(1, 2), st.integers(2, 5), queue), min_size=1, max_size=2))
    room = [sum(task.cpu for one in low for task in one.tasks if task.node == node) for node in range(2)]
    state = cluster([{"cpu": cpu, "memory": 9} for cpu in room], [*low, *high], racks=(1, 1))
    if draw(st.booleans()):
        state = with_queues(state, deserved=draw(st.integers(0, 6)), capability=draw(st.integers(2, 12)))
    rows = draw(st.sets(st.integers(0, sum(len(one.tasks) for one in low) - 1)))
    return with_budget(state, sorted(rows), draw(st.integers(0, 2)))


QUOTAS = st.sampled_from([(), ("capacity",), ("pdb",), ("capacity", "pdb"), ("drf", "capacity")])


@given(guarded(), st.booleans(), QUOTAS)
def test_what_is_counted_in_columns_is_what_plugins_say_when_asked(
    state: Snapshot, simulated: bool, more: tuple[str, ...]
) -> None:
    chosen = policy([*USUAL, *more], topology_aware=simulated)
    for run in (preempted, reclaimed):
        counted = run(state, chosen)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(VictimHost, "task_quota", lambda *_: None)
            asked = run(state, chosen)
        assert statements(counted) == statements(asked)
        for statement, (before, after) in zip(counted.statements, steps(state, counted), strict=True):
            owner = before.tasks.podgroup[statement.evictions]
            others = owner[owner != statement.preemptor]
            assert not (minima_met(before).ready & ~minima_met(after).ready)[others].any()  # no gang loses a minimum


@given(guarded(), st.booleans(), QUOTAS)
def test_the_compiled_sweep_and_its_plain_twin_agree(state: Snapshot, simulated: bool, more: tuple[str, ...]) -> None:
    chosen = policy([*USUAL, *more], topology_aware=simulated)
    for run in (preempted, reclaimed):
        compiled = run(state, chosen)
        with uncompiled():
            assert statements(run(state, chosen)) == statements(compiled)


def statements(made: Progress) -> list[tuple[list[int], list[int], list[int]]]:
    return [(one.evictions.tolist(), one.nominated.tolist(), one.nominated_node.tolist()) for one in made.statements]
