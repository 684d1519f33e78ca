"""When a domain is kept for a podgroup, and until when."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.claim import Claim, claimable, claimed_nodes, overlaps, why_over
from tests.support.asking import DEFAULT, plan
from tests.support.builders import Gang, cluster, gang

UNTIL = 10.0
CLAIMING = replace(DEFAULT, claim_after_refusals=3)


def racks(waiting: Gang) -> Snapshot:
    """Two racks of two nodes, each full of a gang that can lose all, and one more gang; domain 0 is the cluster."""
    return cluster([{"gpu": 4}] * 4, [*(gang(4, at, gpu=1, minimum=0) for at in range(4)), waiting], racks=(2, 2))


def test_a_plan_that_evicts_for_a_gang_may_claim_the_narrowest_domain_that_holds_it() -> None:
    state = racks(gang(2, gpu=4, priority=1, required_level=0))
    made = plan(state, 4)
    assert claimable(made, state, CLAIMING) in (1, 2)
    assert claimable(made, state, replace(CLAIMING, claim_after_refusals=0)) == NONE
    assert claimable(made, replace(state, epoch=state.epoch + 1), CLAIMING) == NONE


def test_a_lone_task_claims_nothing() -> None:
    state = racks(gang(1, gpu=4, priority=1))
    assert claimable(plan(state, 4), state, CLAIMING) == NONE


def test_claims_overlap_where_they_share_a_node() -> None:
    state = racks(gang(2, gpu=4))
    for domain, others, shared in ((1, [2], False), (1, [1], True), (0, [2], True), (1, [], False), (1, [NONE], False)):
        assert overlaps(state, domain, frozen(others, np.int64)) == shared
    assert claimed_nodes(state, [Claim(4, 2, UNTIL)]).tolist() == [2, 3]


@pytest.mark.parametrize(
    ("podgroup", "now", "why"),
    [
        (4, UNTIL - 0.1, None),
        (4, UNTIL, "its time is over"),
        (NONE, 0.0, "its podgroup is gone"),
        (0, 0.0, "its podgroup has its room"),
    ],
)
def test_a_claim_ends_with_its_podgroup_its_need_or_its_time(podgroup: int, now: float, why: str | None) -> None:
    assert why_over(podgroup, UNTIL, racks(gang(2, gpu=4)), now) == why
