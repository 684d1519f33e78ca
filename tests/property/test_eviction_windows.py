"""Over many cycles no more is evicted in any window than the policy lets be, in all and of each queue."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import answered, open_case
from pipeline.actions.setup import Setup
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle, next_due
from pipeline.policy import Policy
from tests.chaos.eviction_windows import Told, beyond
from tests.support.depth import sampled
from tests.support.strategies import GPU, documents

PROFILES = ("default", "volcano", "kai", "koordinator")
#: Seconds from one cycle to the next.
STEPS = st.lists(st.sampled_from([0.0, 0.4, 1.0, 7.3, 30.0, 61.0]), min_size=3, max_size=9)
BOUNDS = st.fixed_dictionaries(
    {"window_s": st.sampled_from([1, 20.5, 60])},
    optional={"in_window": st.integers(0, 5), "in_window_of_queue": st.integers(0, 3)},
)


def paced(document: dict[str, Any], profile: str, bounds: dict[str, Any]) -> dict[str, Any]:
    """The document under a profile that bounds evictions, with two podgroups more that wait for room."""
    more = [
        {
            "name": f"late{at}", "queue": queue, "priority": 3, "min_available": 2, "phase": "Inqueue",
            "tasks": [{"name": f"late{at}", "count": 2, "request": {"cpu": 1, GPU: 1}}],
        }
        for at, queue in enumerate(("a", "b"))
    ]  # fmt: skip
    policy: dict[str, Any] = {"profile": profile, "plugins": {"evictionbudget": {"arguments": bounds}}}
    if profile == "kai":
        policy["actions"] = ["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
    return document | {"policy": policy, "podgroups": [*document["podgroups"], *more]}


def evicted(snapshot: Snapshot, policy: Policy, now: float, steps: list[float]) -> tuple[list[Told], Snapshot]:
    """What some cycles evict, with pauses between searches as live; and the state after them."""
    told, setup = list[Told](), Setup()
    for step in steps:
        done = cycle(snapshot, policy, now, setup)
        for made in done.statements:
            told += [(now, str(queue)) for queue in snapshot.queue_of(made.evictions).tolist()]
        setup = Setup(backoff=done.backoff)
        snapshot, now = answered(done, now), now + step
    return told, snapshot


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=sampled(60))
@given(document=documents(), bounds=BOUNDS, steps=STEPS)
def test_no_window_has_more_evictions_than_the_policy_lets_be(
    profile: str, document: dict[str, Any], bounds: dict[str, Any], steps: list[float]
) -> None:
    case = open_case(paced(document, profile, bounds))
    told, after = evicted(case.snapshot, case.policy, case.now, steps)
    assert list(beyond(told, case.policy)) == []
    assert int(after.recent.count.sum()) == len(told)
    due = next_due(after, case.policy, case.now + sum(steps))
    assert due is None or due > case.now + sum(steps)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=sampled(30))
@given(document=documents())
def test_a_window_that_is_wide_enough_changes_no_decision(profile: str, document: dict[str, Any]) -> None:
    bounds = {"in_window": 10_000, "in_window_of_queue": 10_000}
    made = []
    for arguments in ({}, bounds):
        case = open_case(paced(document, profile, arguments))
        done = cycle(case.snapshot, case.policy, case.now)
        made.append([(one.action, one.evictions.tolist(), one.nominated.tolist()) for one in done.statements])
    assert made[0] == made[1]
    assert np.array_equal(done.snapshot.recent.queue >= 0, np.ones(len(done.snapshot.recent), bool))
