"""What the streams alone say of each decision: a history as it was breaks nothing, one with a greedy judge does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from actors.broker.bus import DECISIONS, EVENTS
from actors.commit import committer
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.statement import Statement
from tests.chaos import memory_broken as broken
from tests.chaos.decisions_again import broken_in
from tests.chaos.memory_world import World
from tests.chaos.schedule import drawn

SEEDS = range(1, 41)


def found(seed: int) -> list[str]:
    world = World(drawn(seed))
    world.play()
    return [*broken_in(world.bus.history[EVENTS], world.bus.history.get(DECISIONS, []), world.policy)]


def test_a_history_in_which_things_went_wrong_shows_no_decision_that_breaks_a_rule() -> None:
    assert [found(seed) for seed in range(1, 9)] == [[]] * 8


@pytest.mark.parametrize(
    ("takes", "complaint"),
    [(broken.needless, "(8) plan"), (broken.deserved, "(6) plan"), (broken.protected, "(7) plan")],
    ids=["takes more than it needs", "takes what is deserved", "takes what must stay"],
)
def test_a_judge_that_takes_one_task_too_many_shows_in_the_history(
    takes: Callable[[Statement, Snapshot, int], bool], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "judge", broken.greedy(takes))
    assert any(complaint in sentence for sentence in _told())


def _told() -> Iterator[str]:
    for seed in SEEDS:
        yield from found(seed)
