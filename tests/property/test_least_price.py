"""What is proved to be the least price is the least: against all sets of victims of small clusters.

That the least is found is asked where everything decides, in `test_random_comparison`.
"""

import random
from dataclasses import replace
from itertools import combinations

import numpy as np

from pipeline.decision.price import Price, price_of
from pipeline.placement.layout.packing import place_classes
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.domain_bundles import DomainBundles
from pipeline.solvers.bundles.covering.proof import is_least
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, searching

CLUSTERS = 80


def crowd(rng: random.Random) -> BundleSearch:
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
    waiting = [Task(gpu=rng.randint(1, 4))] * rng.randint(1, 2)
    nodes = [{"gpu": gpu} for gpu in gpus]
    snapshot = cluster(nodes, [*groups, Gang(waiting, len(waiting), priority=9)], racks=(2, 2))
    return searching(snapshot, len(groups), by_priority=True)


def least_of(search: BundleSearch) -> Price:
    """The price of the cheapest of all sets of victims that make room in the cluster, for a gang of one shape."""
    snapshot, need, prices = search.snapshot, search.need, list[Price]()
    owner, minimum = snapshot.tasks.podgroup, snapshot.podgroups.min_available
    here, runs = np.flatnonzero(search.candidate).tolist(), snapshot.tasks.node >= 0
    for some in (c for many in range(len(here) + 1) for c in combinations(here, many)):
        left = snapshot.counts.running - np.bincount(owner[list(some)], minlength=len(minimum))
        breaks = (left < minimum) & (snapshot.counts.running >= minimum)
        gone = np.union1d(some, np.flatnonzero(breaks[owner] & runs)).astype(np.int64)
        room = snapshot.room.future.copy()
        np.add.at(room, snapshot.tasks.node[gone], snapshot.request[gone])
        whole = place_classes(need.request, need.count, search.allowed, room).sum() == need.count.sum()
        if whole and search.candidate[gone].all():
            prices.append(price_of(snapshot, gone, need.total, search.lost_work, None, 0))
    return min(prices)


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
        for make in (alike, crowd):
            # Of sets that were not polished many are dearer than the least: they must not be proved.
            search = replace(make(random.Random(seed)), effort=0)
            found = select(search, 0)
            if isinstance(found, Selection) and len(found.victims) and is_least(DomainBundles(search, 0), found):
                least = least_of(search)
                assert (found.price, found.price.gangs_broken) == (least, least.gangs_broken), seed
                proved += found.price.gangs_broken > 1
    assert proved > CLUSTERS / 8
