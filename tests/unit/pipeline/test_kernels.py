"""Two functions at once, by two threads, and one after the other where the second thread is at work."""

from threading import Event, current_thread

import pytest

from pipeline.kernels import both, in_halves


def here() -> str:
    return current_thread().name


def test_the_first_of_two_is_answered_by_the_second_thread() -> None:
    other, mine = both(here, here)
    assert (other.startswith("kernels"), mine) == (True, here())


def test_within_either_of_two_there_are_no_two_at_once() -> None:
    """Else a thread would wait for one that waits for it."""
    by_other, by_mine = both(lambda: both(here, here), lambda: both(here, here))
    assert len(set(by_other)) == 1
    assert by_mine == (here(), here())


def test_the_second_thread_is_free_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        both(here, lambda: 1 // 0)
    assert both(here, here)[0].startswith("kernels")


def test_an_error_of_one_is_raised_once_the_other_has_ended() -> None:
    raising, ended = Event(), list[bool]()

    def second() -> None:
        raising.set()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        both(lambda: ended.append(raising.wait()), second)
    assert ended == [True]


@pytest.mark.parametrize(("rows", "parts"), [(9, [(0, 9)]), (10, [(0, 5), (5, 10)]), (11, [(0, 5), (5, 11)])])
def test_rows_are_cut_in_halves_from_enough_of_them_on(rows: int, parts: list[tuple[int, int]]) -> None:
    assert list(in_halves(lambda begin, end: (begin, end), rows, 10)) == parts
