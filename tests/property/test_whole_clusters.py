"""Whole clusters come to rest, with everything in them that decides at once.

Victims are gone or start over, tasks end at once or take up to three cycles. What each profile still does in a second
cycle, and why, is counted in decision 88.
"""

import numpy as np
import pytest

from actors.cli.simulate import answered, open_case
from pipeline.cluster.arrays import Bools
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import TERMINATING
from pipeline.cycle import Cycle, cycle
from tests.support.deciding import overfull, torn
from tests.support.depth import sampled
from tests.support.whole_clusters import WholeClusters

CYCLES, QUIET, LONGEST = 9, 2, 3
PROFILES = ("default", "kai", "koordinator", "volcano")


def decisions(seed: int, profile: str, *, again: bool, slow: bool) -> list[Cycle]:
    """Some cycles, with the fleet's answers in between; ``slow``: what ends may take several of them."""
    case, done = open_case(WholeClusters(seed, profile, again=again).document()), list[Cycle]()
    snapshot, since = case.snapshot, np.zeros(len(case.snapshot.tasks), np.int64)
    for _ in range(CYCLES):
        done.append(cycle(snapshot, case.policy, case.now))
        snapshot = answered(done[-1], case.now, over(done[-1].snapshot, since) if slow else None)
    return done


def over(snapshot: Snapshot, since: np.ndarray) -> Bools:
    """bool[T]: tasks that have ended, after one to three cycles; ``since`` counts those of each."""
    ending = snapshot.tasks.status == TERMINATING
    since[:] = np.where(ending, since + 1, 0)
    return np.asarray(ending & (since > np.arange(len(since)) % LONGEST))


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_cluster_comes_to_rest_and_no_node_is_overfull_on_the_way(profile: str, again: bool, slow: bool) -> None:
    evicting = 0
    for seed in range(sampled(40)):
        done = decisions(seed, profile, again=again, slow=slow)
        for one in done:
            assert overfull(one.snapshot) == [], seed
            assert torn(one.snapshot) == set(), seed
        last = [made for one in done[-QUIET:] for made in one.statements if not made.empty]
        assert last == [], seed
        evicting += any(len(made.evictions) for one in done for made in one.statements)
    assert evicting
