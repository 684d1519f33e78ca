"""The log of what was folded lately: how far back it goes, and what a reader gets of it."""

import numpy as np
import pytest

from actors.ingestion.known.news_log import NewsLog
from pipeline.cluster.tables import RUNNING
from pipeline.cluster.updates.events import Changes
from tests.support.following import Follower
from tests.support.small_states import small_state, task_news
from tests.support.told_world import CLUSTER, World, drained


def started(row: int, revision: int) -> Changes:
    return Changes(tasks=task_news((row, RUNNING, 0, revision, 0, float(revision))))


def test_a_reader_gets_the_news_behind_its_state() -> None:
    log, state = NewsLog(), small_state()
    for revision in (1, 2, 3):
        log.add(started(0, revision), state)
    assert log.count == 3
    assert [said.news.tasks.revision.tolist() for said in log.since(1) or ()] == [[2], [3]]
    assert log.since(3) == ()


def test_what_every_reader_has_is_dropped() -> None:
    log, state = NewsLog(), small_state()
    for revision in (1, 2, 3):
        log.add(started(0, revision), state)
    log.forget(2)
    assert log.since(1) is None
    assert len(log.since(2) or ()) == 1
    assert log.count == 3
    log.forget(9)
    assert log.since(3) == ()


def test_a_number_that_is_not_reached_yet_is_of_another_log() -> None:
    assert NewsLog().since(1) is None


def test_the_log_never_holds_more_rows_than_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.ingestion.known.news_log._ROWS", 5)
    log, state = NewsLog(), small_state()
    most = max(5, len(state.tasks) + len(state.nodes))
    for revision in range(1, 2 * most):
        log.add(started(0, revision), state)
    held = next(number for number in range(log.count) if log.since(number) is not None)
    assert (log.count - held) * 2 <= most  # news of one row counts as two


def test_news_that_changes_nothing_is_not_noted(world: World) -> None:
    ingestor = drained(world.ingestor())
    world.tell("task_started", task="default/train-0", node="n0")
    drained(ingestor)
    count = ingestor.state.log.count
    old = world.outgoing("task_started", {"task": "default/train-0", "node": "n0"}, revision=1)
    world.say(old)
    drained(ingestor)
    assert ingestor.state.log.count == count


def test_after_a_full_list_readers_begin_anew(world: World) -> None:
    ingestor = drained(world.ingestor())
    before = ingestor.state.log
    world.list_fleet(CLUSTER, "again")
    drained(ingestor)
    assert ingestor.state.log is not before
    assert ingestor.state.log.count == 0


def test_a_reader_follows_new_podgroups_nodes_and_queues_by_their_news(world: World) -> None:
    ingestor, follower = drained(world.ingestor()), Follower()
    follower.take(ingestor.state)
    task = {"name": "late-0", "request": {"cpu": 1, "gpu": 1}, "labels": {"app": "x", "of": "late"}}
    said = (
        ("podgroup_upserted", {"name": "late", "namespace": "other", "queue": "dev", "tasks": [task]}),
        ("node_upserted", {"name": "n9", "allocatable": {"cpu": "8", "pods": 10}, "labels": {"rack": "r9"}}),
        ("queue_upserted", {"name": "third", "deserved": {"cpu": 1}}),
        ("budget_upserted", {"name": "c", "match_labels": {"of": "late"}, "disruptions_allowed": 2}),
        ("task_started", {"task": "other/late-0", "node": "n9"}),
    )
    for kind, body in said:
        world.tell(kind, **body)
        ingestor.poll()
        assert follower.take(ingestor.state) is not ingestor.snapshot
    assert follower.taken == len(said)
    assert np.array_equal(follower.snapshot.room.idle, ingestor.snapshot.room.idle)  # type: ignore[union-attr]
