"""Selection against brute force: every set of victims of a small cluster that respects its bundles."""

from itertools import chain, combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.minima_met import breaks_without, minima_met
from pipeline.cluster.what_if import WhatIf
from pipeline.solvers.bundles.bundling.bundle_search import EFFORT
from pipeline.solvers.bundles.covering.chosen import Selection, victims_by_bundle
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, searching
from tests.support.oracles import bundles_plainly, places, ways
from tests.support.twins import uncompiled

TREES = [[], [(NONE, 1, NONE), (NONE, 2, NONE)], [(NONE, 0, 1), (0, 1, NONE), (0, 2, NONE), (NONE, 1, NONE)]]


@st.composite
def crowds(draw, shapes=1, parts=True):
    """Six to eight tasks of three podgroups on four nodes in two racks, and a gang that waits."""
    held = [draw(st.integers(0, 1)) for _ in range(4)]
    trees = [draw(st.sampled_from([[], [], *TREES] if parts else TREES[:1])) for _ in range(3)]
    tasks: list[list[Task]] = [[], [], []]
    for _ in range(draw(st.integers(6, 8))):
        owner, node, gpu = draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(st.integers(1, 3))
        leaves = [row for row in range(len(trees[owner])) if all(other[0] != row for other in trees[owner])]
        held[node] += gpu
        tasks[owner].append(
            Task(
                node, gpu=gpu, role=draw(st.integers(NONE, 1)), priority=draw(st.integers(0, 2)),
                subgroup=draw(st.sampled_from([NONE, *leaves])), created=float(draw(st.integers(0, 2))),
                preemptible=draw(st.integers(0, 19)) > 0,
            )
        )  # fmt: skip
    nodes = [{"gpu": gpu} for gpu in held]
    gangs = [
        Gang(
            tasks[g], max(len(tasks[g]) - draw(st.sampled_from([0, 0, 0, 0, 0, 1, 2, 4, -1])), 0),
            priority=draw(st.integers(0, 2)), roles=draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (1, 1), (2, 2)])),
            subgroups=trees[g], min_subgroups=draw(st.sampled_from([NONE, 1])),
        )
        for g in range(3)
    ]  # fmt: skip
    sizes = [draw(st.integers(1, 4)) for _ in range(shapes)]
    waiting = [Task(gpu=gpu) for gpu in sizes for _ in range(draw(st.integers(1, 3)))]
    snapshot = cluster(nodes, [*gangs, Gang(waiting, len(waiting), priority=9)], racks=(2, 2))
    flags = {"cluster_wide": draw(st.booleans()), "allow_whole": draw(st.integers(0, 4)) > 0}
    flags["effort"] = draw(st.sampled_from([EFFORT, EFFORT, 0]))
    if draw(st.booleans()):
        refused = draw(st.sets(st.integers(0, 7), max_size=2))
        flags["quota_filter"] = lambda rows, _unit: ~np.isin(rows, list(refused))
    return snapshot, flags, draw(st.integers(0, 2))


def split_of(search, domain):
    return DomainBundles(search, domain).ordered


def tasks_of(search, bundles, bundle):
    """Task rows of one bundle."""
    return search.snapshot.occupancy.task[bundles.entry[bundles.owner == bundle]]


def told(search, domain):
    """What is selected, in words."""
    found = select(search, domain)
    if not isinstance(found, Selection):
        return repr(found)
    return repr((found, victims_by_bundle(search, found.outcome)))


@given(crowds())
def test_bundles_are_those_of_document_1(crowd):
    snapshot, flags, domain = crowd
    search = searching(snapshot, 3, **flags)
    bundles = split_of(search, domain)
    found = {
        (int(bundles.podgroup[b]), bool(bundles.safe[b])): set(tasks_of(search, bundles, b))
        for b in range(bundles.many)
    }
    plain = bundles_plainly(search, domain)
    assert found == {(bundle.podgroup, bundle.safe): set(bundle.tasks) for bundle in plain}
    along = {(bundle.podgroup, bundle.safe): len(bundle.along) for bundle in plain}
    assert dict(zip(found, bundles.elsewhere.tolist(), strict=True)) == along


@given(crowds())
def test_a_gang_that_loses_only_surplus_keeps_every_minimum(crowd):
    snapshot, flags, domain = crowd
    bundles = split_of(searching(snapshot, 3, **flags), domain)
    after = WhatIf.of(snapshot).evicting(snapshot.occupancy.task[bundles.entry[bundles.safe[bundles.owner]]]).whole
    below = snapshot.counts.ready < snapshot.podgroups.min_available
    assert not (minima_met(snapshot).ready & ~below & ~minima_met(after).ready).any()


@given(crowds())
def test_bundles_come_in_one_total_order(crowd):
    snapshot, flags, domain = crowd
    bundles = split_of(searching(snapshot, 3, **flags), domain)
    keys = list(zip((~bundles.safe).tolist(), snapshot.podgroups.priority[bundles.podgroup].tolist(), strict=True))
    assert keys == sorted(keys)


def permitted(search, plain):
    """The bundles that the vote leaves."""
    if search.quota_filter is None:
        return plain
    grants = {
        row: bool(search.quota_filter(np.array([row]), None)[0])
        for bundle in plain
        for row in bundle.tasks + bundle.along
    }
    short = {b.podgroup for b in plain if b.safe and not all(grants[row] for row in b.tasks)}
    left = []
    for bundle in plain:
        if bundle.safe:
            left.append(type(bundle)(bundle.podgroup, True, tuple(row for row in bundle.tasks if grants[row])))
        elif all(grants[row] for row in bundle.tasks + bundle.along) and not (
            search.rules.cluster_wide and bundle.podgroup in short
        ):
            left.append(bundle)
    return left


def selected(crowd, gang):
    """The snapshot of a crowd, the search for its ``gang``, the domain, and what is selected there."""
    snapshot, flags, domain = crowd
    search = searching(snapshot, gang, **flags)
    return snapshot, search, domain, select(search, domain)


@given(crowds())
def test_a_selection_is_found_wherever_there_is_one(crowd):
    snapshot, flags, domain = crowd
    search = searching(snapshot, 3, **flags)
    bundles = permitted(search, bundles_plainly(search, domain))
    found = select(search, domain)
    assert isinstance(found, Selection) == any(True for _ in ways(search, domain, bundles))


@given(crowds())
def test_victims_are_whole_minimal_and_make_room(crowd):
    snapshot, search, domain, found = selected(crowd, 3)
    if not isinstance(found, Selection):
        return
    bundles, gone = permitted(search, bundles_plainly(search, domain)), set(found.victims.tolist())
    assert places(search, domain, gone)
    losing = np.unique(snapshot.tasks.podgroup[found.victims]).astype(np.int64)
    broken = set(losing[breaks_without(snapshot, losing, found.victims)].tolist())
    assert found.price.gangs_broken == len(broken)
    for bundle in bundles:  # of one that keeps its minima other tasks may go than those that come first
        taken = gone & set(bundle.tasks + bundle.along)
        if not bundle.safe and bundle.podgroup in broken:
            assert taken == set(bundle.tasks + bundle.along)
            assert not places(search, domain, gone - taken)
    assert search.candidate[found.victims].all()
    surplus = {
        row for b in bundles if b.safe and not (search.rules.cluster_wide and b.podgroup in broken) for row in b.tasks
    }
    kept = {row for row in gone if int(snapshot.tasks.podgroup[row]) not in broken}
    for row in gone & (surplus | kept):
        assert not places(search, domain, gone - {row})
    for bundle in bundles:
        if bundle.safe and search.rules.cluster_wide and bundle.podgroup in broken:
            assert set(bundle.tasks) <= gone


@st.composite
def elastic_crowds(draw):
    """Two podgroups that can spare a task or two, on three nodes with a little room, and a gang of larger tasks."""
    spare, held = [draw(st.integers(1, 2)) for _ in range(2)], [draw(st.integers(0, 2)) for _ in range(3)]
    gangs = []
    for most in spare:
        tasks = [
            Task(
                draw(st.integers(0, 2)), gpu=draw(st.integers(1, 3)), role=draw(st.integers(NONE, 1)),
                priority=draw(st.integers(0, 2)),
            )
            for _ in range(draw(st.integers(most + 1, 4)))
        ]  # fmt: skip
        for task in tasks:
            held[task.node] += task.gpu
        gangs.append(Gang(tasks, len(tasks) - most, priority=2, roles=(draw(st.integers(0, 1)), 0)))
    asks = [draw(st.integers(3, 5))] * draw(st.integers(1, 2))
    waiting = Gang([Task(gpu=gpu) for gpu in asks], len(asks), priority=9)
    snapshot = cluster([{"gpu": gpu} for gpu in held], [*gangs, waiting], racks=(2, 1))
    flags = {name: draw(st.booleans()) for name in ("cluster_wide", "keep_order", "by_priority")}
    return snapshot, flags | {"effort": draw(st.sampled_from([EFFORT, 0]))}, draw(st.integers(0, 1))


@given(elastic_crowds())
def test_no_podgroup_breaks_that_could_keep_its_minima(crowd):
    """Not if some of its victims stayed, with room for the gang all the same."""
    snapshot, search, domain, found = selected(crowd, 2)
    if not isinstance(found, Selection):
        return
    gone, entries = set(found.victims.tolist()), search.terms.entries
    for group in found.broken.tolist():
        here = entries.task[found.entry[entries.podgroup[found.entry] == group]].tolist()
        lost = {row for row in gone if int(snapshot.tasks.podgroup[row]) == group}
        for goes in chain.from_iterable(combinations(here, many) for many in range(len(here) + 1)):
            keeps = not breaks_without(snapshot, np.array([group]), np.array(goes, np.int64))[0]
            assert not (keeps and places(search, domain, gone - lost | set(goes)))


@given(crowds())
def test_every_task_of_the_gang_gets_a_node_that_has_room_for_it(crowd):
    snapshot, search, domain, found = selected(crowd, 3)
    if not isinstance(found, Selection):
        return
    topology = snapshot.topology
    assert ((found.node >= topology.start[domain]) & (found.node < topology.stop[domain])).all()
    left = WhatIf.of(snapshot).evicting(found.victims).nominating(search.need.tasks, found.node).whole.room.future
    assert (left >= 0).all()


@given(crowds(shapes=2, parts=False))
def test_several_shapes_get_room_and_no_single_victim_could_stay(crowd):
    snapshot, search, domain, found = selected(crowd, 3)
    if not isinstance(found, Selection):
        return
    assert (
        WhatIf.of(snapshot).evicting(found.victims).nominating(search.need.tasks, found.node).whole.room.future >= 0
    ).all()
    owner = snapshot.tasks.podgroup[found.victims]
    for row in found.victims[~np.isin(owner, found.broken)]:
        rest = found.victims[found.victims != row]
        nodes = search.nodes_of(domain)
        free = FreeRoom(search, domain)
        here = np.isin(snapshot.occupancy.task, rest) & (snapshot.placed.node >= nodes[0])
        free.leave(np.flatnonzero(here & (snapshot.placed.node < nodes[1])))
        assert not free.places(lambda rest=rest: rest)


@given(crowds(), st.integers(0, 6))
def test_with_a_law_victims_are_lawful_or_there_are_none(crowd, least):
    snapshot, flags, domain = crowd
    search = searching(snapshot, 3, **flags, validate_set=lambda rows: len(rows) >= least)
    found = select(search, domain)
    if isinstance(found, Selection):
        assert len(found.victims) >= least
    else:
        bundles = permitted(search, bundles_plainly(search, domain))
        assert not any(len(gone) >= least for gone in ways(search, domain, bundles))


@given(crowds())
def test_compiled_kernels_and_their_plain_twins_agree(crowd):
    snapshot, flags, domain = crowd
    compiled = told(searching(snapshot, 3, **flags), domain)
    with uncompiled():
        assert told(searching(snapshot, 3, **flags), domain) == compiled
