"""Podgroups that are served at once: each plan holds after those before it, and together they lose no more."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cycle import cycle
from pipeline.decision.decided import carried_out
from pipeline.decision.price import lost_work, price_of
from pipeline.decision.verdict import Accepted
from pipeline.judge import judge
from tests.support.asking import DEFAULT
from tests.support.builders import cluster, gang

PREEMPTING = replace(DEFAULT, actions=("preempt",))


@st.composite
def fleets(draw):
    """Two to four nodes of four devices, gangs of one to three tasks where they fit, and two to five gangs alike."""
    nodes, running = draw(st.integers(2, 4)), []
    left = [4] * nodes
    for _ in range(draw(st.integers(1, 7))):
        gpu, many = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        places = []
        for _ in range(many):
            where = draw(st.integers(0, nodes - 1))
            if left[where] >= gpu:
                left[where] -= gpu
                places.append(where)
        if places:
            running.append(gang(draw(st.integers(1, len(places))), places, gpu=gpu, priority=draw(st.integers(0, 2))))
    size, asked = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    waiting = [gang(size, gpu=asked, priority=9) for _ in range(draw(st.integers(2, 5)))]
    return cluster([{"gpu": 4}] * nodes, running + waiting)


def cost(state, done):
    gone = np.sort(np.concatenate([np.zeros(0, np.int64), *(plan.statement.evictions for plan in done.plans)]))
    requested = state.shapes.request[state.tasks.shape[-1]]
    return price_of(state, gone, requested, lost_work(state, 0.0), None, 0)


@given(fleets())
def test_each_plan_is_lawful_after_those_before_it_and_together_they_lose_no_more(state):
    at_once = cycle(state, PREEMPTING, 0.0)
    with patch("pipeline.actions.evicting.one_pass.MOST_TASKS", 1):
        in_turn = cycle(state, PREEMPTING, 0.0)
    assert len(at_once.plans) == len(in_turn.plans)
    assert cost(state, at_once) <= cost(state, in_turn)
    for plan in at_once.plans:
        verdict = judge(plan, state, PREEMPTING, 0.0)
        assert isinstance(verdict, Accepted), verdict
        assert verdict.statement.evictions.tolist() == plan.statement.evictions.tolist()
        state = replace(carried_out(plan.statement, state, 0.0), revision=state.revision)
