"""What becomes of the state when news comes."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import (
    BOUND,
    FAILED,
    GONE,
    PENDING,
    PHASE_INQUEUE,
    PHASE_RUNNING,
    RUNNING,
    SUCCEEDED,
    TERMINATING,
)
from pipeline.cluster.updates.events import EVICTED, REPLACED, Changes, Listed, NodesRelaid, QueuesRelaid
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.updates.widen import widened
from pipeline.errors import StateRefused
from tests.support.editing import with_tasks
from tests.support.histories import begun, news, on_cards
from tests.support.new_rows import appending, describing
from tests.support.small_states import (
    decided,
    departure,
    node_news,
    nodes_table,
    podgroups_table,
    queues_table,
    small_state,
    task_news,
    tasks_table,
)

NO_CARDS = frozen(np.zeros((4, 0)), np.int32)
#: Per known queue its listed row.
QUEUES = frozen([0, 1], np.int32)


def told(snapshot: Snapshot, *news: tuple[int, ...]) -> Snapshot:
    return fold(snapshot, Changes(tasks=task_news(*news)))


def running_pair() -> Snapshot:
    """Tasks 0 and 1 of podgroup 0 run, its minimum."""
    return told(small_state(), (0, RUNNING, 0, 1), (1, RUNNING, 1, 2))


def test_a_started_task_runs_where_it_was_said() -> None:
    after = told(small_state(), (5, RUNNING, 2, 7))
    assert (after.tasks.status[5], after.tasks.node[5], after.tasks.revision[5]) == (RUNNING, 2, 7)
    assert after.revision == 1


def test_late_news_and_a_duplicate_change_nothing() -> None:
    after = told(small_state(), (5, RUNNING, 2, 7))
    assert told(after, (5, RUNNING, 2, 7)) is after
    assert told(after, (5, TERMINATING, 2, 3)) is after


def test_of_several_news_for_one_task_the_newest_wins() -> None:
    after = told(small_state(), (5, RUNNING, 2, 7), (5, BOUND, 1, 6), (5, SUCCEEDED, NONE, 8))
    assert (after.tasks.status[5], after.tasks.node[5], after.revision) == (SUCCEEDED, 2, 2)


def test_the_room_of_a_started_task_is_taken_once() -> None:
    after = told(small_state(), (5, BOUND, 2, 1), (5, RUNNING, 2, 2))
    assert after.room.idle[2].tolist() == [7000, 1 << 30, 9]


def test_an_evicted_task_starts_over_in_its_next_life() -> None:
    after = told(running_pair(), (0, EVICTED, NONE, 3))
    assert (after.tasks.status[0], after.tasks.node[0], after.tasks.incarnation[0]) == (PENDING, NONE, 1)


def test_a_task_that_is_gone_when_evicted_does_not_start_over() -> None:
    state = with_tasks(small_state(), 0, gone_when_evicted=True)
    after = told(state, (0, RUNNING, 0, 1), (0, EVICTED, NONE, 2))
    assert (after.tasks.status[0], after.tasks.incarnation[0]) == (GONE, 0)


def test_a_failed_task_that_was_replaced_waits_again() -> None:
    after = told(running_pair(), (0, REPLACED, NONE, 3, 0))
    assert (after.tasks.status[0], after.tasks.incarnation[0]) == (PENDING, 1)


def test_news_of_a_life_that_is_over_changes_nothing_but_what_is_known() -> None:
    after = told(running_pair(), (0, EVICTED, NONE, 3, 0), (0, FAILED, NONE, 4, 0))
    assert (after.tasks.status[0], after.tasks.incarnation[0], after.tasks.revision[0]) == (PENDING, 1, 4)


def test_a_started_task_that_waits_again_begins_another_life() -> None:
    after = told(running_pair(), (0, PENDING, NONE, 3))
    assert (after.tasks.status[0], after.tasks.incarnation[0]) == (PENDING, 1)


def test_a_waiting_task_that_is_told_to_end_holds_nothing() -> None:
    after = told(small_state(), (0, TERMINATING, NONE, 1))
    assert after.tasks.status[0] == GONE
    assert not after.room.terminating.any()


def test_a_podgroup_is_running_from_the_moment_it_is_whole() -> None:
    half = told(small_state(), (0, RUNNING, 0, 1))
    assert half.podgroups.phase[0] == PHASE_INQUEUE
    assert np.isnan(half.podgroups.started[0])
    whole = told(half, (1, RUNNING, 1, 2), (2, RUNNING, 1, 3))
    assert (whole.podgroups.phase[0], whole.podgroups.started[0]) == (PHASE_RUNNING, 2.0)


def test_a_podgroup_is_stale_since_it_fell_below_its_minimum() -> None:
    broken = told(running_pair(), (0, EVICTED, NONE, 5))
    assert broken.podgroups.stale_since[0] == 5.0
    assert told(broken, (2, BOUND, 0, 6)).podgroups.started[0] == 2.0
    assert np.isnan(told(broken, (2, BOUND, 0, 6)).podgroups.stale_since[0])


def test_a_podgroup_of_which_nothing_runs_is_not_stale() -> None:
    after = told(running_pair(), (0, EVICTED, NONE, 5), (1, EVICTED, NONE, 6))
    assert np.isnan(after.podgroups.stale_since[0])


def test_a_podgroup_that_falls_and_rises_in_one_batch_is_stale_since_it_fell_last() -> None:
    after = told(running_pair(), (0, FAILED, NONE, 5), (2, RUNNING, 0, 6), (1, FAILED, NONE, 7))
    assert after.podgroups.stale_since[0] == 7.0


def test_what_is_promised_is_not_free() -> None:
    after = fold(small_state(), Changes(decided=decided(1, nominated=[(0, 3, 0)])))
    assert after.tasks.nominated[0] == 3
    assert after.room.future[3].tolist() == [7000, 1 << 30, 9]
    assert (after.decided, after.revision) == (1, 1)


def test_a_nomination_taken_back_is_free_again() -> None:
    after = fold(small_state(), Changes(decided=decided(1, nominated=[(0, 3, 0)])))
    after = fold(after, Changes(decided=decided(2, nominated=[(0, NONE, 0)])))
    assert (after.tasks.nominated == NONE).all()


def test_a_decision_counts_once() -> None:
    after = fold(small_state(), Changes(decided=decided(3, nominated=[(0, 3, 0)])))
    assert fold(after, Changes(decided=decided(3, nominated=[(1, 2, 0)]))) is after


def test_a_decision_about_a_life_that_is_over_means_nothing() -> None:
    over = told(running_pair(), (0, EVICTED, NONE, 3))
    after = fold(over, Changes(decided=decided(1, evicted=[(0, 0)], nominated=[(0, 2, 0)])))
    assert (after.tasks.status[0], after.tasks.nominated[0], after.decided) == (PENDING, NONE, 1)


def test_an_eviction_of_ours_breaks_the_gang_at_its_time() -> None:
    after = fold(running_pair(), Changes(decided=decided(1, 9.5, evicted=[(0, 0)])))
    assert (after.tasks.status[0], after.podgroups.stale_since[0]) == (TERMINATING, 9.5)
    assert after.room.terminating[0].tolist() == [1000, 0, 1]


def test_a_task_that_we_told_to_end_is_not_revived_by_older_news_of_the_fleet() -> None:
    after = fold(running_pair(), Changes(decided=decided(1, evicted=[(0, 0)])))
    assert told(after, (0, RUNNING, 0, 10)).tasks.status[0] == TERMINATING


def test_an_eviction_taken_back_spares_the_task() -> None:
    after = fold(running_pair(), Changes(decided=decided(1, evicted=[(0, 0)])))
    after = fold(after, Changes(decided=decided(2, spared=[(0, 0), (1, 0)])))
    assert after.tasks.status[:2].tolist() == [RUNNING, RUNNING]


def test_a_binding_of_ours_uses_up_the_nomination() -> None:
    after = fold(small_state(), Changes(decided=decided(1, nominated=[(0, 3, 0)])))
    after = fold(after, Changes(decided=decided(2, bound=[(0, 3, 0)])))
    assert (after.tasks.status[0], after.tasks.node[0], after.tasks.nominated[0]) == (BOUND, 3, NONE)


def test_a_nomination_ends_with_the_life_that_had_it() -> None:
    after = fold(small_state(), Changes(decided=decided(1, nominated=[(0, 3, 0)])))
    assert told(after, (0, REPLACED, NONE, 4, 0)).tasks.nominated[0] == NONE


def test_a_cordoned_node_keeps_what_it_has() -> None:
    after = fold(running_pair(), Changes(nodes=node_news(0, 4000, 3, schedulable=False)))
    assert not after.nodes.schedulable[0]
    assert after.room.idle[0, 0] == 3000
    assert fold(after, Changes(nodes=node_news(0, 8000, 2))) is after


def test_a_node_that_leaves_takes_its_tasks_and_promises_with_it() -> None:
    state = fold(running_pair(), Changes(decided=decided(1, nominated=[(2, 0, 0)])))
    after = fold(state, Changes(left=departure(0, 5)))
    assert after.tasks.status[:3].tolist() == [GONE, RUNNING, PENDING]
    assert after.tasks.nominated[2] == NONE
    assert not after.nodes.allocatable[0].any()
    assert after.podgroups.stale_since[0] == 5.0
    assert fold(after, Changes(left=departure(0, 5))) is after


def test_nothing_is_promised_on_a_node_that_has_left() -> None:
    after = fold(small_state(), Changes(left=departure(0, 5)))
    assert fold(after, Changes(decided=decided(1, nominated=[(2, 0, 0)]))).tasks.nominated[2] == NONE


def test_a_removed_podgroup_takes_its_tasks_with_it() -> None:
    after = fold(running_pair(), Changes(removed=departure(0, 5)))
    assert (after.tasks.status[:4] == GONE).all()
    assert not after.podgroups.alive[0]
    assert told(after, (0, RUNNING, 0, 9)) is after


def test_rows_that_do_not_exist_are_refused() -> None:
    with pytest.raises(StateRefused, match=r"task rows in \[0, 12\), found 12 to 12"):
        told(small_state(), (12, RUNNING, 0, 1))
    with pytest.raises(StateRefused, match="node rows"):
        told(small_state(), (0, RUNNING, 4, 1))
    with pytest.raises(StateRefused, match="a node for every started task"):
        told(small_state(), (0, RUNNING, NONE, 1))


def test_nodes_numbered_anew_begin_an_epoch_and_keep_what_they_hold() -> None:
    state = fold(running_pair(), Changes(decided=decided(1, nominated=[(2, 3, 0)])))
    relaid = NodesRelaid(
        state.vocabulary,
        nodes_table(5),
        state.topology,
        frozen([4, 3, 2, NONE], np.int32),
        NO_CARDS,
        frozen([0], np.int32),
        1,
    )
    after = fold(state, relaid)
    assert after.tasks.node[:2].tolist() == [4, 3]
    assert after.tasks.nominated[2] == NONE
    assert (after.epoch, after.revision) == (state.epoch + 1, state.revision + 1)


def test_a_node_that_holds_something_is_not_numbered_away() -> None:
    state = running_pair()
    with pytest.raises(StateRefused, match="a node for every started task"):
        fold(
            state,
            NodesRelaid(
                state.vocabulary,
                nodes_table(3),
                state.topology,
                frozen([NONE, 0, 1, 2], np.int32),
                NO_CARDS,
                frozen([0], np.int32),
                1,
            ),
        )


def test_a_card_that_a_task_holds_is_not_numbered_away() -> None:
    state = fold(begun(), on_cards(news(1, "task", 0, RUNNING, 0, 0)))
    relaid = NodesRelaid(
        state.vocabulary, state.nodes, state.topology, frozen(range(4), np.int32), frozen([[NONE, 1]] * 4, np.int32),
        frozen([0], np.int32), 1,
    )  # fmt: skip
    with pytest.raises(StateRefused, match="expected the card of every started task, found one whose card is not in"):
        fold(state, relaid)
    kept = fold(state, replace(relaid, card_of=frozen([[1, NONE]] * 4, np.int32)))
    assert (state.tasks.card[0], kept.tasks.card[0]) == (0, 1)


def test_queues_numbered_anew_begin_an_epoch() -> None:
    state = small_state()
    moved = fold(state, QueuesRelaid(state.vocabulary.resources, queues_table(3), frozen([2, 1], np.int32), 1))
    assert (moved.epoch, moved.podgroups.queue.tolist()) == (state.epoch + 1, [2, 2, 2])


def test_a_full_list_keeps_lives_evictions_and_promises_that_still_make_sense() -> None:
    state = fold(running_pair(), Changes(decided=decided(1, evicted=[(0, 0)], nominated=[(2, 3, 0), (3, 2, 0)])))
    fresh = with_tasks(small_state(), 0, status=RUNNING, node=0)
    task_of = frozen([*range(11), NONE], np.int64)
    after = fold(
        state,
        Listed(fresh, task_of, frozen([0, 1, NONE], np.int64), frozen([0, 1, NONE, 3], np.int32), NO_CARDS, QUEUES),
    )
    # 0 was told to end; 1 ran and waits again; 2 keeps its promise; the node of 3's is no more.
    assert after.tasks.status[:2].tolist() == [TERMINATING, PENDING]
    assert after.tasks.incarnation[:3].tolist() == [0, 1, 0]
    assert after.tasks.nominated[:4].tolist() == [NONE, NONE, 3, NONE]
    assert (after.epoch, after.decided) == (state.epoch + 1, 1)
    assert (after.tasks.revision == [1, 2, *[0] * 10]).all()
    assert after.podgroups.started[0] == 2.0


@pytest.mark.parametrize("lives", [False, True])
def test_a_list_that_is_older_than_our_decisions_takes_nothing_back(lives: bool) -> None:
    state = fold(small_state(), Changes(decided=decided(1, bound=[(0, 1, 0), (1, 2, 0)])))
    state = fold(state, Changes(decided=decided(2, evicted=[(1, 0)])))
    everything = frozen(range(len(state.tasks)), np.int64)
    nodes = frozen(range(len(state.nodes)), np.int32)
    listed = Listed(small_state(), everything, frozen([0, 1, 2], np.int64), nodes, NO_CARDS, QUEUES, lives)
    after = fold(state, listed)
    assert (after.tasks.status[0], after.tasks.node[0], after.tasks.incarnation[0]) == (BOUND, 1, 0)
    # Who was told to end and waits has ended, unless the list says that it is in the same life.
    assert (after.tasks.status[1], after.tasks.incarnation[1]) == ((TERMINATING, 0) if lives else (PENDING, 1))


def test_a_list_that_says_lives_is_believed() -> None:
    state = fold(small_state(), Changes(decided=decided(1, bound=[(0, 1, 0)])))
    fresh = with_tasks(small_state(), ..., incarnation=3)
    everything = frozen(range(len(state.tasks)), np.int64)
    nodes = frozen(range(len(state.nodes)), np.int32)
    after = fold(state, Listed(fresh, everything, frozen([0, 1, 2], np.int64), nodes, NO_CARDS, QUEUES, True))
    assert (after.tasks.status[0], after.tasks.incarnation[0]) == (PENDING, 3)


def test_a_wider_resource_axis_gives_no_queue_anything() -> None:
    wide = widened(small_state(), ("cpu", "memory", "pods", "nvidia.com/gpu"))
    assert wide.nodes.allocatable[0].tolist() == [8000, 1 << 30, 10, 0]
    assert wide.shapes.request[0].tolist() == [1000, 0, 1, 0]
    assert wide.room.idle.shape == (4, 4)


def test_an_appended_task_is_ranked_in_among_the_known() -> None:
    state = small_state(groups=1, tasks=3)
    grown = fold(
        state, Changes(new_rows=appending(state, podgroups_table(1), tasks_table([1, 1], [NONE, NONE]), [1, 3]))
    )
    assert grown.tasks.order.tolist() == [0, 2, 3, 1, 4]
    assert grown.tasks_of(1).tolist() == [3, 4]
    assert (grown.epoch, grown.revision) == (1, 1)


def test_a_podgroup_described_anew_takes_its_tasks_along() -> None:
    state = running_pair()
    after = fold(state, Changes(new_rows=describing(state, 0, minimum=3, at=8.0)))
    assert not after.podgroups.alive[0]
    assert after.tasks_of(3).tolist() == [0, 1, 2, 3]
    assert after.tasks.role[:5].tolist() == [3, 3, 3, 3, 1]
    assert (after.podgroups.started[3], after.podgroups.stale_since[3]) == (2.0, 8.0)
    assert told(after, (2, RUNNING, 0, 9)).counts.running.tolist() == [0, 0, 0, 3]
