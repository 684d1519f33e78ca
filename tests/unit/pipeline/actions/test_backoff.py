"""When to search again for a unit without a plan."""

from dataclasses import replace

from pipeline.actions.backoff import Backoff
from tests.support.small_states import small_state

UNIT = (1,)
AT_FIRST = small_state()
LATER = replace(AT_FIRST, revision=AT_FIRST.revision + 1)


def test_without_news_no_unit_is_searched_for_again() -> None:
    backoff = Backoff().unplaced(UNIT, 8, AT_FIRST, 0.0)
    assert backoff.is_paused(UNIT, AT_FIRST, 1e9)
    assert not backoff.is_paused((2,), AT_FIRST, 0.0)


def test_with_news_the_pause_still_has_to_pass() -> None:
    backoff = Backoff(first_s=1.0).unplaced(UNIT, 1, AT_FIRST, 0.0)
    assert backoff.is_paused(UNIT, LATER, 0.9)
    assert not backoff.is_paused(UNIT, LATER, 1.3)


def test_pauses_grow_with_every_failure_in_a_row_and_end_at_the_cap() -> None:
    backoff, pauses = Backoff(first_s=1.0, cap_s=4.0), []
    for _ in range(5):
        backoff = backoff.unplaced(UNIT, 1, AT_FIRST, 0.0)
        at = backoff.next_at(LATER)
        assert at is not None
        pauses.append(at)
    assert pauses[0] < pauses[1] < pauses[2]
    assert max(pauses) <= 4.0 * 1.25


def test_a_large_gang_waits_longer_than_a_small_one() -> None:
    backoff = Backoff(first_s=1.0).unplaced((1,), 1, AT_FIRST, 0.0).unplaced((2,), 512, AT_FIRST, 0.0)
    assert not backoff.is_paused((1,), LATER, 1.5)
    assert backoff.is_paused((2,), LATER, 3.0)


def test_the_same_seed_gives_the_same_pauses() -> None:
    def pauses(seed: int) -> list[float | None]:
        return [Backoff(seed=seed).unplaced((row,), 4, AT_FIRST, 0.0).next_at(LATER) for row in range(4)]

    assert pauses(3) == pauses(3) != pauses(4)
    assert len(set(pauses(3))) == 4


def test_a_pause_is_a_value_and_changes_none_before_it() -> None:
    before = Backoff().unplaced(UNIT, 8, AT_FIRST, 0.0)
    after = before.unplaced((2,), 8, AT_FIRST, 0.0)
    assert after.is_paused((2,), AT_FIRST, 0.0)
    assert not before.is_paused((2,), AT_FIRST, 0.0)


def test_new_row_numbers_make_every_gang_group_new() -> None:
    backoff = Backoff().unplaced(UNIT, 8, AT_FIRST, 0.0)
    renumbered = replace(LATER, epoch=AT_FIRST.epoch + 1)
    assert not backoff.is_paused(UNIT, renumbered, 0.0)
    assert backoff.next_at(renumbered) is None


def test_a_unit_that_starves_no_more_is_forgotten() -> None:
    assert Backoff().unplaced(UNIT, 8, AT_FIRST, 0.0).kept({(7,)}).next_at(LATER) is None


def test_after_a_refusal_only_the_pause_has_to_pass() -> None:
    backoff = Backoff(first_s=1.0).refused(UNIT, 1, AT_FIRST, 0.0)
    assert backoff.is_paused(UNIT, AT_FIRST, 0.9)
    assert not backoff.is_paused(UNIT, AT_FIRST, 1.3)
    assert backoff.refused(UNIT, 1, AT_FIRST, 2.0).is_paused(UNIT, AT_FIRST, 3.9)


def test_news_ends_the_pause_after_a_first_refusal_and_no_later_one() -> None:
    first = Backoff(first_s=1.0).refused(UNIT, 1, AT_FIRST, 0.0)
    assert first.is_paused(UNIT, AT_FIRST, 0.5)
    assert not first.is_paused(UNIT, LATER, 0.5)
    second = first.refused(UNIT, 1, LATER, 0.5)
    assert second.is_paused(UNIT, replace(LATER, revision=LATER.revision + 1), 1.0)


def test_all_pauses_end_when_a_node_that_was_closed_to_all_opens() -> None:
    backoff = Backoff().with_closed([(3, 50.0)]).unplaced(UNIT, 8, AT_FIRST, 0.0)
    assert backoff.next_at(AT_FIRST) == 50.0
    assert backoff.with_closed([(3, 50.0), (4, 60.0)]).is_paused(UNIT, AT_FIRST, 0.0)
    assert not backoff.with_closed([]).is_paused(UNIT, AT_FIRST, 0.0)


def test_what_ends_with_time_opens_a_pause_without_news_but_not_before_the_pause_is_over() -> None:
    for opens_at, over in ((50.0, 50.0), (0.1, 1.0)):
        backoff = Backoff(first_s=1.0).unplaced(UNIT, 1, AT_FIRST, 0.0, opens_at)
        at = backoff.next_at(AT_FIRST)
        assert at is not None
        assert over <= at <= max(1.25, opens_at)
        assert backoff.is_paused(UNIT, AT_FIRST, at - 0.01)
        assert not backoff.is_paused(UNIT, AT_FIRST, at)
        assert not backoff.is_paused(UNIT, LATER, 1.3)
