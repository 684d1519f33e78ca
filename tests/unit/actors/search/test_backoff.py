"""When to search again for who was searched for in vain."""

from dataclasses import replace

from actors.search.backoff import Backoff
from tests.support.small_states import small_state

UNIT = (1,)
AT_FIRST = small_state()
LATER = replace(AT_FIRST, revision=AT_FIRST.revision + 1)


def test_without_news_nobody_is_searched_for_again() -> None:
    backoff = Backoff()
    backoff.holds(UNIT, AT_FIRST, 0.0)
    backoff.vain(UNIT, 8, AT_FIRST, 0.0)
    assert backoff.holds(UNIT, AT_FIRST, 1e9)
    assert not backoff.holds((2,), AT_FIRST, 0.0)


def test_with_news_the_pause_still_has_to_pass() -> None:
    backoff = Backoff(first_s=1.0)
    backoff.holds(UNIT, AT_FIRST, 0.0)
    backoff.vain(UNIT, 1, AT_FIRST, 0.0)
    assert backoff.holds(UNIT, LATER, 0.9)
    assert not backoff.holds(UNIT, LATER, 1.3)


def test_pauses_grow_with_every_vain_search_and_end_at_the_cap() -> None:
    backoff = Backoff(first_s=1.0, cap_s=4.0)
    pauses = []
    for _ in range(5):
        backoff.holds(UNIT, AT_FIRST, 0.0)
        backoff.vain(UNIT, 1, AT_FIRST, 0.0)
        at = backoff.next_at(LATER)
        assert at is not None
        pauses.append(at)
    assert pauses[0] < pauses[1] < pauses[2]
    assert max(pauses) <= 4.0 * 1.25


def test_a_large_gang_waits_longer_than_a_small_one() -> None:
    backoff = Backoff(first_s=1.0)
    backoff.holds((1,), AT_FIRST, 0.0)
    backoff.vain((1,), 1, AT_FIRST, 0.0)
    backoff.vain((2,), 512, AT_FIRST, 0.0)
    assert not backoff.holds((1,), LATER, 1.5)
    assert backoff.holds((2,), LATER, 3.0)


def test_the_same_seed_gives_the_same_pauses() -> None:
    def pauses(seed: int) -> list[float | None]:
        backoff, found = Backoff(seed=seed), []
        for row in range(4):
            backoff.holds((row,), AT_FIRST, 0.0)
            backoff.vain((row,), 4, AT_FIRST, 0.0)
            found.append(backoff.next_at(LATER))
        return found

    assert pauses(3) == pauses(3) != pauses(4)


def test_new_row_numbers_make_everybody_new() -> None:
    backoff = Backoff()
    backoff.holds(UNIT, AT_FIRST, 0.0)
    backoff.vain(UNIT, 8, AT_FIRST, 0.0)
    assert not backoff.holds(UNIT, replace(AT_FIRST, epoch=AT_FIRST.epoch + 1), 0.0)


def test_who_starves_no_more_is_forgotten() -> None:
    backoff = Backoff()
    backoff.holds(UNIT, AT_FIRST, 0.0)
    backoff.vain(UNIT, 8, AT_FIRST, 0.0)
    backoff.keep({(7,)})
    assert backoff.next_at(LATER) is None


def test_after_a_refusal_only_the_pause_has_to_pass() -> None:
    backoff = Backoff(first_s=1.0)
    backoff.holds(UNIT, AT_FIRST, 0.0)
    backoff.refused(UNIT, 1, AT_FIRST, 0.0)
    assert backoff.holds(UNIT, AT_FIRST, 0.9)
    assert not backoff.holds(UNIT, AT_FIRST, 1.3)
    backoff.refused(UNIT, 1, AT_FIRST, 2.0)
    assert backoff.holds(UNIT, AT_FIRST, 3.9)
