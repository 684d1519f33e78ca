"""The number at the end of a name, read for all names at once."""

from hypothesis import given
from hypothesis import strategies as st

from actors.columns.row_builder import numbers
from pipeline.cluster.arrays import NONE

NAMES = st.lists(st.text(st.sampled_from("019a-é²٣\ud800"), max_size=14), max_size=8)


def ending(name: str) -> int:
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if 0 < len(digits) < 10 else NONE


@given(NAMES)
def test_numbers_of_names_are_their_last_digits(names: list[str]) -> None:
    assert numbers(names).tolist() == [ending(name) for name in names]


def test_nine_digits_are_a_number_and_ten_are_none() -> None:
    assert numbers(["a-999999999", "a-1000000000", "7", "", "a-007"]).tolist() == [999_999_999, NONE, 7, NONE, 7]
