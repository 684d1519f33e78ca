"""One short fault schedule against a real broker and real Ray; `make chaos` plays many long ones."""

from collections import Counter
from collections.abc import Iterator

import pytest

from actors.broker.bus import DECISIONS
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import Outgoing, pack_decision
from tests.chaos.real_checks import broken
from tests.chaos.real_faults import strike
from tests.chaos.real_ray import raylets
from tests.chaos.real_runs import come_to_rest
from tests.chaos.real_schedule import Fault, Kind, Moment, Schedule, Standby, drawn
from tests.chaos.real_world import World, world


def test_a_seed_always_draws_the_same_faults() -> None:
    assert [drawn(seed) for seed in range(50)] == [drawn(seed) for seed in range(50)]


def test_the_first_thirty_seeds_know_every_fault_and_every_role() -> None:
    faults = [fault for seed in range(1, 31) for fault in drawn(seed).faults]
    assert {fault.kind for fault in faults} == set(Kind)
    assert {fault.role for fault in faults if fault.kind is Kind.KILL} == {
        "ingestor", "dispatcher", "searcher", "committer",
    }  # fmt: skip
    assert {fault.moment for fault in faults} == set(Moment)
    assert {drawn(seed).standby for seed in range(1, 31)} == set(Standby)


@pytest.fixture(scope="module")
def rested() -> Iterator[World]:
    """A world in which a committer died, another froze and lost the lease, the broker restarted, and all is at rest."""
    faults = (
        Fault(Kind.KILL, "committer", Moment.RECORDED),
        Fault(Kind.REORDER, for_s=0.3),
        Fault(Kind.RIVAL, "committer", Moment.RECORDED, for_s=0.2),
        Fault(Kind.KILL_BROKER, moment=Moment.RECORDED, for_s=0.1),
    )
    with raylets() as cluster, world(Schedule(1, faults), cluster) as here:
        here.open()
        for fault in faults:
            strike(here, fault)
        here.all_living()
        come_to_rest(here, Counter())
        here.pipeline.stop()
        yield here


def test_dead_and_frozen_committers_and_a_broker_that_restarts_break_no_invariant(rested: World) -> None:
    assert broken(rested) == []
    assert len(rested.history.of(DECISIONS)) >= 4


def test_a_forged_decision_is_found(rested: World) -> None:
    forged = PlanCommitted(plan_id="forged", epoch=0, action="preempt", purpose="gang", evictions=[])
    rested.bus.publish(DECISIONS, pack_decision(Outgoing("plan_committed", "forged", 0, forged)))
    found = broken(rested)
    assert "(2, 19) plan forged does not say on which state it was planned" in found
    assert any("was recorded under epoch 0, after one under epoch" in sentence for sentence in found)
