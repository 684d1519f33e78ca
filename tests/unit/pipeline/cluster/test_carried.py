"""What follows from the tables goes with them from one snapshot to the next."""

import pickle
from dataclasses import fields, replace

import numpy as np

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.counted.task_index import TaskIndex, index_of
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, RUNNING
from pipeline.cluster.updates.events import Changes, NodesRelaid
from pipeline.cluster.updates.fold import fold
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import statement
from pipeline.keeping import made_of
from tests.support.encoded import encoded
from tests.support.small_states import nodes_table, small_state, task_news
from tests.support.told_world import World, drained


def columns(index: TaskIndex) -> list[list[int]]:
    """All columns of an index."""
    parts = index.by_node, index.placed, index.by_podgroup
    return [getattr(part, field.name).tolist() for part in parts for field in fields(part)]


def counted_anew(snapshot: Snapshot) -> list[list[int]]:
    return columns(index_of(snapshot.tasks, len(snapshot.nodes), len(snapshot.podgroups)))


def test_the_index_of_tasks_goes_along_to_nodes_numbered_anew() -> None:
    state = fold(small_state(), Changes(tasks=task_news(*((row, RUNNING, row % 3, 1) for row in range(8)))))
    assert columns(state.index) == counted_anew(state)
    numbers, no_cards = frozen([4, 0, 2, NONE], np.int32), frozen(np.zeros((4, 0)), np.int32)
    relaid = NodesRelaid(
        state.vocabulary, nodes_table(5), state.topology, numbers, no_cards, frozen([0], np.int32), 1
    )  # fmt: skip
    after = fold(state, relaid)
    assert made_of(after, "index") is not None
    assert columns(after.index) == counted_anew(after)


def test_a_snapshot_takes_its_totals_and_its_index_to_another_process() -> None:
    state = small_state()
    bare = replace(state)
    for sent in (pickle.loads(pickle.dumps(state)), pickle.loads(pickle.dumps(bare.packed())).opened()):
        assert encoded(sent) == encoded(state)
        assert columns(made_of(sent, "index")) == counted_anew(state)
        assert made_of(sent, "totals") is not None
        assert np.array_equal(sent.room.idle, state.room.idle)


def test_a_podgroup_without_tasks_that_is_described_again_has_its_place_in_the_index_of_tasks() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    for queue in ("ml", "dev"):
        world.tell("podgroup_upserted", name="empty", queue=queue)
        snapshot = drained(ingestor).snapshot
        right = index_of(snapshot.tasks, len(snapshot.nodes), len(snapshot.podgroups)).by_podgroup
        assert np.array_equal(snapshot.index.by_podgroup.start, right.start)
        assert len(snapshot.tasks_of(ingestor.state.names.row("podgroups", "default/empty"))) == 0


def test_what_is_known_of_podgroups_stays_while_decisions_leave_their_tasks_as_they_are() -> None:
    state = small_state()
    known = [state.answers_about((row,), told) for row in range(len(state.podgroups))]
    task = int(np.flatnonzero((state.tasks.status == PENDING) & (state.tasks.nominated == NONE))[0])
    owner, bound = int(state.tasks.podgroup[task]), np.array([task])
    made = statement("allocate", bound=bound, bound_node=np.array([0]), bound_card=np.array([NONE]))
    after = carried_out(statement("enqueue", admitted=np.array([owner])), state, 0.0)
    after = carried_out(made, after, 0.0).at_revision(state.revision)
    for row, answers in enumerate(known):
        assert (after.answers_about((row,), told) is answers) == (row != owner)
    assert after.answers_about((0, owner), told) is after.answers(told)
    heard = fold(after, Changes(tasks=task_news((task, RUNNING, 0, 9))))
    assert all(heard.answers_about((row,), told) is not answers for row, answers in enumerate(known))


def told() -> None:
    """Stands for a function that looks at podgroups."""
