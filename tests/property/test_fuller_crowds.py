"""Fuller clusters than an oracle can search: decided, explained in words and judged, under every profile."""

from dataclasses import replace
from itertools import product

import pytest

from actors.cli.simulated_words import in_words
from pipeline.cycle import cycle
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from pipeline.policy import Purpose
from tests.support.brute_force import attempt_of, crowded
from tests.support.simulating import simulate

#: Some of these bind a gang in two ways at once.
SEEDS = (*range(16), 50, 190, 588, 625, 683)


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_crowd_is_made_of_it_is_decided_and_explained(seed: int, profile: str) -> None:
    for purpose in (Purpose.PREEMPT, Purpose.RECLAIM):
        document = crowded(seed, purpose, profile, tasks=30)
        result = simulate(document, explain=True)
        assert result["error"] is None
        assert in_words(result)
        asked = attempt_of(document, purpose)
        plans = cycle(asked.snapshot, asked.policy, asked.now).plans[:1]
        assert all(isinstance(judge(plan, asked.snapshot, asked.policy, asked.now), Accepted) for plan in plans)


def test_without_polish_the_same_gangs_are_served_by_plans_that_hold() -> None:
    paid = {True: 0.0, False: 0.0}
    for seed, purpose in product(SEEDS, (Purpose.PREEMPT, Purpose.RECLAIM)):
        asked, served = attempt_of(crowded(seed, purpose, tasks=30), purpose), []
        for polish in paid:
            policy = replace(asked.policy, polish=polish)
            plans = cycle(asked.snapshot, policy, asked.now).plans
            served.append([plan.explanation.preemptor for plan in plans])
            assert all(isinstance(judge(plan, asked.snapshot, policy, asked.now), Accepted) for plan in plans[:1])
            paid[polish] += sum(lost for plan in plans for _, lost in plan.price.broken)
        assert served[0] == served[1]
    assert 0.0 < paid[True] <= paid[False]
