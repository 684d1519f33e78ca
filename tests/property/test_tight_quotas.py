"""Where quotas or limits leave little choice, there is a plan if and only if some lawful set of victims makes room."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, Longs, frozen
from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle
from pipeline.decision.plan import Plan
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from pipeline.placement.need import need_of
from pipeline.policy import PluginSetting, Purpose
from pipeline.propose import host_of
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.put_right.out_of_order import out_of_order
from pipeline.solvers.bundles.solver import search_of
from tests.support.asking import DEFAULT, asked, attempt
from tests.support.builders import Gang, Task, cluster, gang
from tests.support.depth import sampled
from tests.support.editing import with_parents, with_quota
from tests.support.twins import uncompiled

#: Nodes of four devices, all in use: more tasks than those of which every set is tried.
NODES, DEVICES = 11, 4
RECLAIMING = replace(DEFAULT, actions=("reclaim",))


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """The nodes of the tasks of each rigid gang, how many whole nodes are asked for, and what may be spared beside."""
    places = draw(st.permutations([node for node in range(NODES) for _ in range(DEVICES)]))
    near = draw(st.booleans())
    sizes, left = list[int](), len(places)
    while left:
        sizes.append(min(draw(st.sampled_from([1, 2, 4, 6, 8, 12])) if len(sizes) < 9 else left, left))
        left -= sizes[-1]
    ends = np.cumsum([0, *sizes]).tolist()
    on = sorted(places) if near else places
    gangs = [list(on[begin:end]) for begin, end in pairwise(ends)]
    return gangs, draw(st.integers(1, 8)), draw(st.sampled_from([0, 0, 1, 2, 4]))


def tight(gangs: list[list[int]], wanted: int, beside: int) -> Snapshot:
    """One queue holds everything and must keep all but what is asked for, and a little beside it."""
    return asking_for(gangs, [gang(wanted, gpu=DEVICES, queue=1)], wanted * DEVICES + beside)


def asking_for(gangs: list[list[int]], waiting: list[Gang], spare: int) -> Snapshot:
    """The same for some gangs of the other queue."""
    running = [Gang([Task(node, gpu=1) for node in mine], minimum=len(mine), queue=0) for mine in gangs]
    state = cluster([{"gpu": DEVICES}] * NODES, [*running, *waiting], queues=2)
    return with_quota(state, deserved={0: {"gpu": NODES * DEVICES - spare}, 1: {"gpu": spare}})


def lawful(gangs: list[list[int]], wanted: int, spare: int, breaks: int = NODES * DEVICES) -> bool:
    """Whether any set of at most so many whole gangs clears enough nodes and takes no more than may be spared."""
    held = np.array([np.bincount(mine, minlength=NODES) for mine in gangs])
    for bits in product([0, 1], repeat=len(gangs)):
        gone = np.array(bits) @ held
        if sum(bits) <= breaks and gone.sum() <= spare and (gone == DEVICES).sum() >= wanted:
            return True
    return False


def may_clear(wanted: int, on: np.ndarray, each: tuple[int, int], most: int) -> bool:
    """Whether some gangs may go so that enough nodes are empty; ``on`` [gangs, nodes]: the devices that they hold.

    Every second gang may lose as many devices as ``each`` says first, the others as many as it says then, and all of
    them ``most``.
    """
    possible = False
    for bits in product([0, 1], repeat=len(on)):
        gone = np.array(bits)[:, None] * on
        within = gone[::2].sum() <= each[0] and gone[1::2].sum() <= each[1] and gone.sum() <= most
        possible |= bool(within and (gone.sum(axis=0) == DEVICES).sum() >= wanted)
    return possible


@settings(max_examples=sampled(60))
@given(fleets())
def test_a_gang_is_refused_only_where_no_lawful_set_of_gangs_makes_room(case: tuple[list[list[int]], int, int]) -> None:
    snapshot, (gangs, wanted, beside) = tight(*case), case
    assert NODES * DEVICES > MOST
    made = asked(snapshot, len(gangs), Purpose.RECLAIM)
    assert isinstance(made, Plan) == lawful(gangs, wanted, wanted * DEVICES + beside)
    if isinstance(made, Plan):
        assert len(made.statement.evictions) <= wanted * DEVICES + beside
        verdict = judge(made, snapshot, DEFAULT, 0.0)
        assert isinstance(verdict, Accepted), verdict
        assert np.array_equal(verdict.statement.evictions, made.statement.evictions)


@settings(max_examples=sampled(60))
@given(fleets(), st.tuples(st.integers(0, 24), st.integers(0, 24)), st.booleans())
def test_in_a_tree_a_gang_is_refused_only_where_no_set_leaves_every_queue_its_share(
    case: tuple[list[list[int]], int, int], spares: tuple[int, int], shared: bool
) -> None:
    """Gangs are by turns of two queues, whose parent must keep its share too; it may be that of the preemptor's queue.

    Then it holds less than it deserves, and loses no more than the preemptor brings.
    """
    gangs, wanted, beside = case
    running = [
        Gang([Task(node, gpu=1) for node in mine], minimum=len(mine), queue=1 + at % 2) for at, mine in enumerate(gangs)
    ]
    state = cluster([{"gpu": DEVICES}] * NODES, [*running, gang(wanted, gpu=DEVICES, queue=3)], queues=4)
    held, most = [sum(map(len, gangs[at::2])) for at in (0, 1)], wanted * DEVICES + (0 if shared else beside)
    deserved = {0: NODES * DEVICES + 1 if shared else NODES * DEVICES - most, 3: NODES * DEVICES}
    deserved |= {1 + at: max(held[at] - spares[at], 0) for at in (0, 1)}
    state = with_quota(state, deserved={queue: {"gpu": gpus} for queue, gpus in deserved.items()})
    made = asked(with_parents(state, NONE, 0, 0, 0 if shared else NONE), len(gangs), Purpose.RECLAIM)
    on = np.array([np.bincount(mine, minlength=NODES) for mine in gangs])
    assert isinstance(made, Plan) == may_clear(wanted, on, spares, most)


@settings(max_examples=sampled(60))
@given(fleets(), st.integers(1, 4), st.sampled_from([Purpose.PREEMPT, Purpose.RECLAIM]))
def test_a_limit_on_podgroups_that_break_refuses_only_where_no_set_keeps_it(
    case: tuple[list[list[int]], int, int], breaks: int, purpose: Purpose
) -> None:
    gangs, wanted, _ = case
    limit = PluginSetting("evictionbudget", arguments=(("breaks", breaks),))
    policy = replace(DEFAULT, plugins=(*DEFAULT.plugins, limit))
    queue, everything = int(purpose is Purpose.RECLAIM), NODES * DEVICES
    state = asking_for(gangs, [gang(wanted, gpu=DEVICES, queue=queue, priority=9)], everything)
    made = asked(state, len(gangs), purpose, policy=policy)
    assert isinstance(made, Plan) == lawful(gangs, wanted, everything, breaks)


@settings(max_examples=sampled(60))
@given(fleets(), st.tuples(st.integers(0, 24), st.integers(0, 24)), st.sampled_from([Purpose.PREEMPT, Purpose.RECLAIM]))
def test_budgets_refuse_a_gang_only_where_no_set_of_gangs_keeps_them(
    case: tuple[list[list[int]], int, int], allowed: tuple[int, int], purpose: Purpose
) -> None:
    """One budget covers every second gang, the other the rest; in a reclaim their queue is tight too."""
    (gangs, wanted, beside), reclaims = case, purpose is Purpose.RECLAIM
    spare = wanted * DEVICES + beside if reclaims else NODES * DEVICES
    state = asking_for(gangs, [gang(wanted, gpu=DEVICES, queue=int(reclaims), priority=9)], spare)
    held = np.array([np.bincount(mine, minlength=NODES) for mine in gangs])
    possible = may_clear(wanted, held, allowed, spare)
    labels = np.append(1 + np.arange(len(gangs)) % 2, 0)
    made = asked(budgeted(state, labels, allowed), len(gangs), purpose)
    assert isinstance(made, Plan) == possible


def test_a_budget_is_not_used_up_on_what_makes_no_room() -> None:
    """Of one budget one task may go: surplus, which leaves half a node to others, or one that has a node for itself."""
    low = [Gang([Task(node, gpu=DEVICES)], minimum=1, priority=0) for node in range(10)]
    elastic = Gang([Task(node, gpu=DEVICES // 2) for node in (10, 10, 11, 11)], minimum=3, priority=1)
    alone = [Gang([Task(node, gpu=DEVICES)], minimum=1, priority=2) for node in (12, 13)]
    state = cluster([{"gpu": DEVICES}] * 14, [*low, elastic, *alone, gang(2, gpu=DEVICES, priority=9)])
    labels = np.array([*([1] * 10), 2, 2, 0, 0])
    made = asked(budgeted(state, labels, (0, 1)), 13, Purpose.PREEMPT)
    assert isinstance(made, Plan)
    assert state.tasks.node[made.statement.evictions].tolist() == [12, 13]


def budgeted(state: Snapshot, labels: Longs, allowed: tuple[int, int]) -> Snapshot:
    """The state with two budgets, for podgroups with label 1 and those with label 2."""
    covers = np.array([[False, True, False], [False, False, True]])
    return replace(
        state,
        vocabulary=replace(state.vocabulary, label_sets=((), (("app", "x"),), (("app", "y"),))),
        tasks=replace(state.tasks, label_set=frozen(labels[state.tasks.podgroup], np.int32)),
        budgets=Budgets(frozen(allowed, np.int32), frozen([0, 0], np.int32), frozen(covers, np.bool_)),
    )


@pytest.mark.parametrize("seed", range(60))  # fewer miss faults that are known
def test_a_gang_that_needs_one_rack_is_refused_only_where_no_rack_has_a_lawful_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    racks, wide = int(rng.choice([3, 8, 20])), int(rng.choice([6, 10, 12]))
    gangs = in_racks(rng, racks, wide)
    wanted, spare = int(rng.integers(1, wide)), int(rng.choice([0, 0, 1, 2]))
    spare += wanted * DEVICES
    running = [Gang([Task(node, gpu=1) for node in mine], minimum=len(mine), queue=0) for mine in gangs]
    asks = gang(wanted, gpu=DEVICES, queue=1, required_level=0)
    state = cluster([{"gpu": DEVICES}] * (racks * wide), [*running, asks], racks=[wide] * racks)
    made = asked(
        with_quota(state, deserved={0: {"gpu": racks * wide * DEVICES - spare}, 1: {"gpu": spare}}),
        len(gangs), Purpose.RECLAIM,
    )  # fmt: skip
    here = [[[node - rack * wide for node in mine] for mine in gangs] for rack in range(racks)]
    assert isinstance(made, Plan) == any(lawful_in(mine, wide, wanted, spare) for mine in here)


def in_racks(rng: np.random.Generator, racks: int, wide: int) -> list[list[int]]:
    """The nodes of the tasks of rigid gangs, up to ten in each full rack, in some of them by node; a few span racks."""
    gangs = list[list[int]]()
    for rack in range(racks):
        places = np.arange(rack * wide, (rack + 1) * wide).repeat(DEVICES)
        left = (places if rng.random() < 0.3 else rng.permutation(places)).tolist()
        for size in [*rng.choice([1, 2, 3, 4, 6, 8], 9).tolist(), len(left)]:
            gangs, left = [*gangs, left[:size]] if left else gangs, left[size:]
    for _ in range(len(gangs) // 8):
        one, other = sorted(rng.choice(len(gangs), 2, replace=False).tolist())
        if len(gangs[one]) + len(gangs[other]) <= 10:
            gangs[one] = [*gangs[one], *gangs.pop(other)]
    return gangs


def lawful_in(gangs: list[list[int]], wide: int, wanted: int, spare: int) -> bool:
    """Whether some gangs with tasks on the nodes from 0 on clear enough of them and hold no more than may be spared."""
    mine = [one for one in gangs if any(0 <= node < wide for node in one)]
    held = np.array([[*np.bincount([at for at in one if 0 <= at < wide], minlength=wide), len(one)] for one in mine])
    gone = np.array([*product([0, 1], repeat=len(mine))]) @ held
    return bool(((gone[:, -1] <= spare) & ((gone[:, :-1] == DEVICES).sum(axis=1) >= wanted)).any())


#: What the order of bundles leaves no room for: five of six gangs on whole nodes would suffice, but the gang that lies
#: across the others' nodes comes first and takes what the queue may lose.
ACROSS = [[0, 0, 0, 0, 1, 1, 1, 1], [2, 2, 2, 2, 3, 3, 3, 3], [4, 4, 4, 5, 5, 5], [6, 6, 6, 7, 7, 7], [8, 8, 8, 8],
          [9, 9, 9, 9], [4, 5, 6, 7], [10, 10, 10, 10]]  # fmt: skip


@pytest.mark.parametrize(("wanted", "beside"), [(3, 0), (6, 0), (8, 2)])
def test_the_compiled_search_and_its_plain_twin_find_the_same(wanted: int, beside: int) -> None:
    snapshot = tight(ACROSS, wanted, beside)

    def found() -> str:
        again = replace(snapshot)  # nothing is kept from one to the other
        one = attempt(again, len(ACROSS), Purpose.RECLAIM)
        search = search_of(one, host_of(one), need_of(again, one.podgroups, surplus=False))
        return repr(out_of_order(DomainBundles(search, 0), 1))

    compiled = found()
    assert (compiled != "None") == lawful(ACROSS, wanted, wanted * DEVICES + beside)
    with uncompiled():
        assert found() == compiled


@settings(max_examples=sampled(40))
@given(fleets(), st.integers(2, 5))
def test_as_many_gangs_alike_are_served_as_there_is_room_for(case: tuple[list[list[int]], int, int], many: int) -> None:
    (gangs, wanted, beside), size = case, 2
    spare = wanted * DEVICES + beside
    state = asking_for(gangs, [gang(size, gpu=DEVICES, queue=1) for _ in range(many)], spare)
    entitled = min(many, spare // (size * DEVICES))
    room = max(some for some in range(entitled + 1) if lawful(gangs, some * size, spare))
    assert len(cycle(state, RECLAIMING, 0.0).plans) == room


def test_what_is_cheapest_for_some_gangs_alike_does_not_keep_others_out() -> None:
    """Of five gangs three are served most cheaply by the two widest, beside which no fourth finds room; four can be."""
    gangs = [
        [0] * 4, [1] * 4 + [2] * 4 + [3] * 4, [4] * 4 + [5] * 4 + [6] * 4, [7] * 2, [7] * 2 + [8] * 2,
        [8] * 2 + [9] * 4 + [10] * 2, [10] * 2,
    ]  # fmt: skip
    state = asking_for(gangs, [gang(2, gpu=DEVICES, queue=1) for _ in range(5)], 8 * DEVICES)
    done = cycle(state, RECLAIMING, 0.0)
    assert [plan.statement.preemptor for plan in done.plans] == [7, 8, 9, 10]
