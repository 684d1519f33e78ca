"""Seeded fault schedules over the whole pipeline in memory: whatever goes wrong, nothing of it may be seen afterwards.

``python -m tests.chaos --memory --seed S --runs 1`` plays a seed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from actors.broker.bus import DECISIONS, EVENTS
from actors.verification.audit import audited
from pipeline.policy import Policy
from tests.chaos.eviction_windows import paced
from tests.chaos.memory_checks import run, run_schedule
from tests.chaos.memory_world import KAI, KOORDINATOR, Parts, World
from tests.chaos.schedule import STEPS, Fault, Kind, Outcome, Schedule, drawn
from tests.support.depth import sampled

#: `make chaos MEMORY=1` plays 300. Every kind of fault is drawn for the first six.
SEEDS, AT_ONCE, TURNS, FAULTS = range(33, 33 + sampled(24)), 3, 36, 12
KAI_SEEDS = range(1001, 1001 + sampled(8, least=4))
KOORDINATOR_SEEDS = range(2001, 2001 + sampled(6, least=3))
PACED_SEEDS = range(1, 1 + sampled(4, least=2))
#: Clocks of machines jump in these.
CLOCK_SEEDS = (13, 14, 15)[: sampled(3, least=1)]
#: The broker becomes an older copy of itself in these.
RESTORED_SEEDS = (1, 45, 102)[: sampled(3, least=1)]
#: What is drawn is counted over these seeds as well.
DRAWN = range(1, 301)

DEFAULT = Parts().policy
of_each_policy = pytest.mark.parametrize("policy", [DEFAULT, KAI, KOORDINATOR], ids=["default", "kai", "koordinator"])


def played(seeds: Sequence[int], policy: Policy = DEFAULT, **more: bool) -> list[Outcome]:
    outcomes = [run(seed, Parts(policy=policy), turns=TURNS, most=FAULTS, **more) for seed in seeds]
    assert not any(outcome.broken for outcome in outcomes), "\n".join(str(one) for one in outcomes if one.broken)
    return outcomes


@pytest.mark.parametrize("first", SEEDS[::AT_ONCE])
def test_a_run_in_which_things_go_wrong_ends_as_if_nothing_had(first: int) -> None:
    outcomes = played(range(first, first + AT_ONCE))
    assert sum(outcome.counts["decisions"] for outcome in outcomes) > 3 * AT_ONCE


def test_the_same_holds_where_tasks_move_and_what_is_left_of_gangs_is_cleared() -> None:
    outcomes = played(KAI_SEEDS, KAI)
    for action in ("consolidation", "stalegangeviction"):
        assert sum(outcome.counts.get(action, 0) for outcome in outcomes) > 0


def test_the_same_holds_where_gangs_gather_and_start_together() -> None:
    outcomes = played(KOORDINATOR_SEEDS, KOORDINATOR)
    for action in ("allocate", "preempt"):
        assert sum(outcome.counts.get(action, 0) for outcome in outcomes) > 0


@of_each_policy
def test_the_same_holds_where_few_tasks_may_be_evicted_in_a_time(policy: Policy) -> None:
    outcomes = played(PACED_SEEDS, paced(policy, in_window=5, in_window_of_queue=4, window_s=10.0))
    assert sum(outcome.counts["victims"] for outcome in outcomes) > 5 * len(outcomes) // 2


@of_each_policy
def test_the_same_holds_where_the_clocks_of_the_roles_jump(policy: Policy) -> None:
    outcomes = played(CLOCK_SEEDS, policy, hosts=True)
    assert all(outcome.counts["HOST_CLOCK"] for outcome in outcomes)


@of_each_policy
def test_whatever_copy_the_broker_is_restored_from_the_system_comes_to_rest_with_the_fleets_state(
    policy: Policy,
) -> None:
    outcomes = played(RESTORED_SEEDS, policy, restored=True)
    assert all(outcome.counts["RESTORE"] for outcome in outcomes)


@pytest.mark.parametrize("step", STEPS["committer"])
@pytest.mark.parametrize("kind", [Kind.KILL, Kind.FREEZE, Kind.UNREACHABLE])
def test_a_committer_may_be_struck_at_every_step(kind: Kind, step: str) -> None:
    faults = [Fault(Kind.LATE_DEATHS, 1), *(Fault(kind, turn, "committer", step, lasts=2) for turn in (1, 8, 15))]
    if step.startswith(("recover", "acquire")):  # the lease must be lost first
        faults += [Fault(Kind.KILL, turn, "committer", "renew before") for turn in (2, 9)]
    outcome = run_schedule(Schedule(7, tuple(faults), turns=24, checkpoint_every_s=4.0))
    assert outcome.broken == []
    assert any(struck.startswith(f"{kind.name} committer: {step}") for struck in outcome.counts), outcome.counts


@pytest.mark.parametrize(
    ("role", "step"), [(role, step) for role in ("dispatcher", "ingestor") for step in STEPS[role]]
)
def test_the_others_may_die_at_every_step(role: str, step: str) -> None:
    faults = [Fault(Kind.POISON, turn) for turn in (2, 5, 9)]
    faults += [Fault(Kind.KILL, turn, role, step) for turn in (1, 4, 8)]
    if role == "ingestor" and step.startswith("newest"):  # what happens at a start only
        faults += [Fault(Kind.KILL, turn, role, "follow events before") for turn in (2, 6)]
    if step.startswith("publish decisions"):  # an entry that is missed is asked for
        faults += [Fault(Kind.HOLE, 3), Fault(Kind.HOLE, 7)]
    outcome = run_schedule(Schedule(11, tuple(faults), turns=12, checkpoint_every_s=2.0))
    assert outcome.broken == []
    assert any(struck == f"KILL {role}: {step}" for struck in outcome.counts), outcome.counts


def test_a_schedule_follows_from_its_seed_and_so_does_its_run() -> None:
    assert drawn(5) == drawn(5) != drawn(6)
    for seed in (5, 510895):  # in the second a list is asked for
        one, other = run(seed), run(seed)
        assert one.counts == other.counts
        assert one.history == other.history


def test_gangs_are_placed_as_ever_although_every_call_to_the_broker_takes_half_a_second() -> None:
    slow = (Fault(Kind.DELAY, 0, lasts=1_000),)
    quick, late = ([one for seed in range(1, 4) for one in _waits(Schedule(seed, way, TURNS))] for way in ((), slow))
    assert len(late) >= len(quick) >= 9
    assert sorted(late)[len(late) // 2] < 15_000  # a turn in which every role has a dozen calls


def _waits(schedule: Schedule) -> list[int]:
    """For each gang that was placed the milliseconds that it waited."""
    world = World(schedule)
    world.play()
    report = audited(world.bus.history[EVENTS], world.bus.history[DECISIONS], world.policy)
    assert report.broken == []
    return [*report.waited_ms.values()]


def _all_drawn(seed: int) -> tuple[Fault, ...]:
    return drawn(seed, turns=TURNS, most=FAULTS, hosts=True, restored=True).faults


def test_every_kind_of_fault_is_drawn_and_played() -> None:
    for seeds, least in ((DRAWN, 30), (SEEDS, 1)):
        faults = [fault for seed in seeds for fault in _all_drawn(seed)]
        kinds = Counter(fault.kind for fault in faults)
        assert min(kinds[kind] for kind in Kind) >= least
        assert {fault.step for fault in faults if fault.role == "committer"} >= set(STEPS["committer"])
