"""What becomes of a reservation."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, FAILED, GONE, PENDING, RUNNING, SUCCEEDED, TERMINATING
from pipeline.decision.reservation import Ended, Ending, GivenUp, Reservation, StillHeld, fate
from tests.support.builders import cluster, gang
from tests.support.editing import with_tasks

EXPIRES, DEADLINE = 100.0, 50.0
VICTIM = 3


def state(*statuses: int, nominated: tuple[int, ...] = (), victim: int = GONE) -> Snapshot:
    """Tasks 0 to 2 are promised a node, or were, and task 3 is the victim that was to end for them."""
    made = cluster([{}], [gang(4)])
    where = [0 if at in nominated else NONE for at in range(4)]
    return with_tasks(made, ..., status=[*statuses, victim], nominated=where)


def reservation(*tasks: int, victim: int = VICTIM, incarnation: int = 0) -> Reservation:
    rows = [frozen(rows, np.int64) for rows in (tasks or (0, 1, 2), [victim], [incarnation])]
    return Reservation(*rows, EXPIRES, DEADLINE)


def given_up(found: object) -> tuple[Ending, list[int], list[int], list[int]]:
    assert isinstance(found, GivenUp)
    return found.reason, found.because_of.tolist(), found.waiting.tolist(), found.alive.tolist()


ALL = (0, 1, 2)
WAIT = (PENDING,) * 3


def test_room_is_held_while_tasks_wait_for_it() -> None:
    assert fate(reservation(), state(*WAIT, nominated=ALL), 0.0) == StillHeld()
    assert fate(reservation(), state(BOUND, RUNNING, PENDING, nominated=(2,)), 0.0) == StillHeld()


def test_nothing_is_held_once_every_task_has_started() -> None:
    assert fate(reservation(), state(BOUND, RUNNING, SUCCEEDED, victim=TERMINATING), 200.0) == Ended()


def test_room_is_given_up_when_a_nomination_was_lost_and_no_task_waits() -> None:
    found = fate(reservation(), state(RUNNING, PENDING, PENDING, victim=RUNNING), 0.0)
    assert given_up(found) == (Ending.NOMINATION_LOST, [1, 2], [], [VICTIM])


@pytest.mark.parametrize("gone", [GONE, FAILED])
def test_the_need_is_gone_with_its_tasks_and_the_victims_that_still_run_are_told(gone: int) -> None:
    found = fate(reservation(), state(gone, gone, RUNNING, victim=RUNNING), 0.0)
    assert given_up(found) == (Ending.NEED_GONE, [0, 1], [], [VICTIM])
    assert fate(reservation(), state(gone, gone, RUNNING), 0.0) == Ended()


def test_a_task_that_is_not_known_any_more_is_gone() -> None:
    found = fate(reservation(NONE, 1), state(*WAIT, nominated=(1,)), 0.0)
    assert given_up(found) == (Ending.NEED_CHANGED, [0], [1], [])
    nobody = replace(reservation(), tasks=frozen([NONE], np.int64), victims=frozen([NONE], np.int64))
    assert fate(nobody, cluster([{}], []), 0.0) == Ended()


@pytest.mark.parametrize("left", [GONE, FAILED, SUCCEEDED])
def test_the_need_changes_when_one_of_those_that_wait_is_left(left: int) -> None:
    found = fate(reservation(), state(left, PENDING, PENDING, nominated=(1, 2)), 0.0)
    assert given_up(found) == (Ending.NEED_CHANGED, [0], [1, 2], [])


@pytest.mark.parametrize("victim", [BOUND, RUNNING, TERMINATING])
def test_a_victim_that_holds_its_room_at_the_deadline_is_overdue(victim: int) -> None:
    snapshot = state(*WAIT, nominated=ALL, victim=victim)
    assert fate(reservation(), snapshot, DEADLINE - 0.1) == StillHeld()
    assert given_up(fate(reservation(), snapshot, DEADLINE)) == (Ending.VICTIMS_OVERDUE, [0], [0, 1, 2], [VICTIM])


def test_a_victim_in_another_life_is_not_the_one_that_was_to_end() -> None:
    snapshot = state(*WAIT, nominated=ALL, victim=RUNNING)
    assert fate(reservation(incarnation=1), snapshot, DEADLINE) == StillHeld()
    assert fate(reservation(victim=NONE), snapshot, DEADLINE) == StillHeld()


def test_room_that_is_not_taken_in_time_is_given_up() -> None:
    snapshot = state(RUNNING, PENDING, PENDING, nominated=(1, 2))
    assert given_up(fate(reservation(), snapshot, EXPIRES)) == (Ending.NOT_STARTED, [1, 2], [1, 2], [])


def test_a_task_that_moves_waits_while_it_ends_on_its_old_node() -> None:
    snapshot = state(TERMINATING, RUNNING, RUNNING, nominated=(0,))
    assert fate(reservation(), snapshot, 0.0) == StillHeld()
