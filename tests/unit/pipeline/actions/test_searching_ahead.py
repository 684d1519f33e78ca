"""Searching ahead is speculation; it must not cost more than it can save."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.actions.searching import InPlace, Outcome
from pipeline.actions.setup import Setup
from pipeline.cluster.arrays import sealed
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.plugins.host import Host
from tests.support.asking import DEFAULT, VOLCANO
from tests.support.builders import cluster, gang

GANGS = 40


class Counting(InPlace):
    """Searches in place, and counts what it is offered ahead."""

    def __init__(self) -> None:
        self.offered: list[tuple[object, ...]] = []

    def ahead(self, attempts: Sequence[Attempt], host: Host) -> Sequence[Outcome]:
        self.offered += [(one.podgroups, one.action, one.within_podgroup) for one in attempts]
        return super().ahead(attempts, host)


def test_each_gang_is_offered_ahead_at_most_once_in_a_pass_where_nothing_is_searched_ahead() -> None:
    """None of the gangs fits even the empty node, so that no plan begins the speculation anew."""
    state = cluster([{"gpu": 4}], [gang(4, 0, gpu=1), *(gang(1, gpu=8 + n, priority=1) for n in range(GANGS))])
    search = Counting()
    done = cycle(state, VOLCANO, 0.0, Setup(search=search))
    assert len(done.unplaced) >= GANGS
    assert len(search.offered) > GANGS // 2
    assert len(search.offered) == len(set(search.offered))


def test_podgroups_alike_that_each_wait_for_a_delay_are_offered_ahead_at_most_once() -> None:
    """The delay is no reason for others of the kind, so each has a turn of its own, however many there are."""
    state = cluster([{"gpu": 4}], [gang(4, 0, gpu=1), *(gang(1, gpu=1, priority=1) for _ in range(100))])
    state = replace(state, podgroups=replace(state.podgroups, preemption_delay_s=sealed(np.full(101, 60.0))))
    search = Counting()
    done = cycle(state, replace(DEFAULT, actions=("preempt",)), 0.0, Setup(search=search))
    assert {one.why.reason for one in done.unplaced} == {Reason.DELAY}
    assert len(done.unplaced) == 100
    assert len(search.offered) == len(set(search.offered))
