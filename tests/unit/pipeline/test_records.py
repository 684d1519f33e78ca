"""A record is made from another as ``dataclasses.replace`` would make it."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import pytest

from pipeline.records import replace, several


@dataclass(frozen=True)
class Record:
    """Two fields, and what follows from one of them."""

    one: int
    other: str = "as it was"

    @cached_property
    def twice(self) -> int:
        return self.one * 2


def test_the_named_fields_change_and_all_others_stay() -> None:
    record = Record(1, "kept")
    assert replace(record, one=2) == dataclasses.replace(record, one=2) == Record(2, "kept")
    assert record == Record(1, "kept")
    assert several(record, ("one",), [(2,), (3,)]) == [Record(2, "kept"), Record(3, "kept")]


def test_what_followed_from_the_old_values_is_worked_out_anew() -> None:
    record = Record(1)
    assert (record.twice, replace(record, one=4).twice) == (2, 8)


def test_a_record_that_checks_itself_is_refused() -> None:
    @dataclass(frozen=True)
    class Checked:
        one: int

        def __post_init__(self) -> None:
            assert self.one > 0

    for _ in range(2):
        with pytest.raises(TypeError, match="expected a record without __post_init__"):
            replace(Checked(1), one=0)


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="expected one, other, found another"):
        replace(Record(1), another=2)
