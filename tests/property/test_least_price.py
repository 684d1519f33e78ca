"""Selection against brute force: of all sets of victims of a small cluster, is one found, and is it the cheapest?

The oracle tries every set of candidates, adds the rest of each podgroup that breaks, and prices what makes room with
the price that other solvers use. Which of a podgroup's tasks are surplus is free in it, so a few of its prices are out
of reach of bundles that are split in two ways; how many is bounded here.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.cluster.rules.minima_met import is_ready
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.price import Price, price_of
from pipeline.placement.need import Need
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.proof import is_least
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, searching
from tests.support.placing import Work, apart, placed

#: Clusters of one kind, and the part of them whose price may be above the least.
CLUSTERS, ABOVE = 80, 0.05


@dataclass(frozen=True)
class Least:
    """The cheapest victims there are, and their price."""

    victims: Rows
    price: Price


def crowd(rng: random.Random, shapes: int) -> BundleSearch:
    """Up to eight tasks of a few podgroups on four nodes in two racks, some of it idle, and a gang that waits."""
    gpus, groups, left = [rng.choice([0, 0, 1, 2]) for _ in range(4)], [], 8
    for _ in range(rng.randint(2, 5)):
        tasks = []
        for _ in range(min(rng.choice([1, 1, 2, 3]), left)):
            node, gpu = rng.randrange(4), rng.randint(1, 3)
            gpus[node] += gpu
            tasks.append(Task(node, gpu=gpu))
        left -= len(tasks)
        least = max(len(tasks) - rng.choice([0, 0, 0, 1, 2]), 0)
        groups += [Gang(tasks, least, priority=rng.randint(0, 2))] if tasks else []
    waiting = [Task(gpu=gpu) for gpu in (rng.randint(1, 4) for _ in range(shapes)) for _ in range(rng.randint(1, 2))]
    nodes = [{"gpu": gpu} for gpu in gpus]
    snapshot = cluster(nodes, [*groups, Gang(waiting, len(waiting), priority=9)], racks=(2, 2))
    return searching(snapshot, len(groups), by_priority=True)


def repelled(rng: random.Random) -> BundleSearch:
    """Tasks of which some carry a label that the waiting gang must not share a node with."""
    gang = [Work(0, cpu=rng.randint(1, 2), constraint=apart(app="x"))] * rng.randint(1, 2)
    cores, work, groups = [rng.randint(1, 4) for _ in range(4)], list(gang), [{"min_available": len(gang)}]
    room = list(cores)
    for group in range(1, rng.randint(3, 5)):
        mine = []
        for _ in range(rng.randint(1, 2)):
            task = Work(group, rng.randint(1, 2), rng.randrange(4), labels=rng.choice([(), (("app", "x"),)]))
            if room[task.node] >= task.cpu:
                room[task.node] -= task.cpu
                mine.append(task)
        work += mine
        groups.append({"min_available": max(len(mine) - rng.choice([0, 0, 1]), 0), "priority": rng.randint(0, 2)})
    snapshot = placed(cores, work, racks=[2, 2], racks_a_block=1, groups=groups)
    candidate = (snapshot.tasks.podgroup != 0) & (snapshot.tasks.node >= 0)
    return searching(snapshot, 0, by_priority=True, candidate=candidate)


def open_nodes(search: BundleSearch, gone: Rows) -> Bools:
    """bool[S, N]: nodes open to the gang once ``gone`` have left, labels minded."""
    snapshot = search.snapshot
    if not any(constraint.anti_affinity for constraint in snapshot.vocabulary.constraints):
        return search.allowed
    stays = np.isin(np.arange(len(snapshot.tasks)), gone, invert=True) & (snapshot.tasks.node >= 0)
    repels = np.array([("app", "x") in labels for labels in snapshot.vocabulary.label_sets], bool)
    closed = np.zeros(len(snapshot.nodes), bool)
    closed[snapshot.tasks.node[stays & repels[snapshot.tasks.label_set]]] = True
    return np.asarray(search.allowed & ~closed)


def with_their_gangs(snapshot: Snapshot, some: tuple[int, ...]) -> Rows:
    """The tasks, and all running members of the podgroups that break without them."""
    rows, owner, runs = np.array(some, np.int64), snapshot.tasks.podgroup, snapshot.tasks.node >= 0
    left = np.bincount(owner[runs], minlength=len(snapshot.podgroups))
    left -= np.bincount(owner[rows], minlength=len(snapshot.podgroups))
    broken = is_ready(snapshot) & (left < snapshot.podgroups.min_available)
    return np.union1d(rows, np.flatnonzero(broken[owner] & runs))


def has_places(need: Need, opened: Bools, room: Longs, task: int) -> bool:
    """Whether the tasks of the minimum from one on have places, every node being tried for each of them."""
    if task == need.minimum:
        return True
    shape = need.shape[task]
    for node in np.flatnonzero(opened[shape] & (room >= need.request[shape]).all(axis=1)):
        left = room.copy()
        left[node] -= need.request[shape]
        if has_places(need, opened, left, task + 1):
            return True
    return False


def least_of(search: BundleSearch, domain: int) -> Least | None:
    """The cheapest of all sets of victims that make room in the domain."""
    snapshot, (first, last) = search.snapshot, search.nodes_of(domain)
    node = snapshot.tasks.node
    here = np.flatnonzero(search.candidate & (node >= first) & (node < last)).tolist()
    best: Least | None = None
    sets = (with_their_gangs(snapshot, c) for many in range(len(here) + 1) for c in combinations(here, many))
    for gone in {one.tobytes(): one for one in sets}.values():
        if not search.candidate[gone].all():
            continue
        room = snapshot.room.future.copy()
        np.add.at(room, node[gone], snapshot.request[gone])
        if not has_places(search.need, open_nodes(search, gone)[:, first:last], room[first:last], 0):
            continue
        price = price_of(snapshot, gone, search.need.total, search.lost_work, None, domain)
        if best is None or price < best.price:
            best = Least(gone, price)
    return best


@pytest.mark.parametrize(
    "make",
    [lambda rng: crowd(rng, 1), lambda rng: crowd(rng, 2), repelled],
    ids=["one shape", "two shapes", "repelled"],
)
def test_none_is_missed_none_is_unlawful_and_hardly_any_costs_more_than_the_least(
    make: Callable[[random.Random], BundleSearch],
) -> None:
    above, cases = [], 0
    for seed in range(CLUSTERS):
        rng = random.Random(seed)
        search = make(rng)
        domain = rng.choice([0, 1, 2])
        least, found = least_of(search, domain), select(search, domain)
        assert isinstance(found, Selection) == (least is not None), seed
        if least is None or not isinstance(found, Selection):
            continue
        cases += 1
        assert search.candidate[found.victims].all(), seed
        assert np.array_equal(with_their_gangs(search.snapshot, tuple(found.victims.tolist())), found.victims), seed
        assert open_nodes(search, found.victims)[:, found.node].any(axis=0).all(), seed
        after = WhatIf.of(search.snapshot).evicting(found.victims).nominating(search.need.tasks, found.node).whole
        assert (after.room.future >= 0).all(), seed
        assert not found.price < least.price, seed
        if least.price < found.price:
            above.append((seed, found.victims.tolist(), least.victims.tolist()))
    assert cases > CLUSTERS // 4
    assert len(above) <= ABOVE * cases, f"{len(above)} of {cases} cost more than the least: {above}"


def alike(rng: random.Random) -> BundleSearch:
    """Podgroups of one or two tasks that need all of them, on four nodes; their work and priority may differ."""
    groups = [
        Gang([Task(node, gpu=1) for node in rng.choices(range(4), k=rng.choice([1, 1, 1, 2]))], priority=priority)
        for priority in rng.choices([0, 0, 0, 1], k=7)
    ]
    groups = [Gang(one.tasks, len(one.tasks), priority=one.priority) for one in groups]
    used = np.bincount([task.node for one in groups for task in one.tasks], minlength=4)
    waiting = Gang([Task(gpu=1)] * rng.randint(1, 3), priority=9)
    snapshot = cluster([{"gpu": int(gpu)} for gpu in used], [*groups, Gang(waiting.tasks, len(waiting.tasks), 9)])
    return searching(snapshot, len(groups), by_priority=True)


def test_what_is_proved_to_be_the_least_is_the_least() -> None:
    proved = 0
    for seed in range(CLUSTERS):
        for make in (alike, lambda rng: crowd(rng, 1)):
            # Of sets that were not polished many are dearer than the least: they must not be proved.
            search = replace(make(random.Random(seed)), effort=0)
            found = select(search, 0)
            if isinstance(found, Selection) and len(found.victims) and is_least(DomainBundles(search, 0), found):
                least = least_of(search, 0)
                assert least is not None
                assert found.price == least.price, seed
                assert found.price.gangs_broken == least.price.gangs_broken, seed
                proved += found.price.gangs_broken > 1
    assert proved > CLUSTERS / 8
