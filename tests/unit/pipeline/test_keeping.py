"""What is made of a record is made once, stays with it, and does not travel."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

import numpy as np
import pytest

from pipeline.keeping import Keeping, begun_like, begun_with, cached_property, made_of
from pipeline.records import replace


@dataclass(frozen=True)
class Record(Keeping):
    """One field."""

    one: int


MADE = list[int]()


def doubled(record: Record) -> np.ndarray:
    MADE.append(record.one)
    return np.array([record.one, record.one])


def refused(record: Record) -> None:
    MADE.append(record.one)
    raise ValueError(record.one)


def itself(record: Record) -> Record:
    return record


def test_it_is_made_once_for_each_record_and_arrays_are_read_only():
    MADE.clear()
    record = Record(3)
    first = record.once(doubled)
    assert record.once(doubled) is first
    assert not first.flags.writeable
    assert replace(record, one=4).once(doubled).tolist() == [4, 4]
    assert MADE == [3, 4]


def test_what_could_not_be_made_is_tried_again():
    MADE.clear()
    record = Record(3)
    for _ in range(2):
        with pytest.raises(ValueError, match="3"):
            record.once(refused)
    assert MADE == [3, 3]


def test_a_record_of_which_the_record_itself_is_made_ends_with_its_last_reference():
    record = Record(3)
    assert record.once(itself) is record.once(itself) is record
    assert record not in record._kept.values()


def test_answers_belong_to_one_function_and_one_record():
    record = Record(3)
    record.answers(doubled)["asked"] = 1
    assert (record.answers(doubled), record.answers(refused)) == ({"asked": 1}, {})
    assert replace(record, one=3).answers(doubled) == {}


@pytest.mark.parametrize("copied", [copy.copy, lambda record: pickle.loads(pickle.dumps(record))])
def test_a_copy_is_equal_and_begins_with_nothing(copied):
    record = Record(3)
    record.once(doubled)
    record.answers(doubled)["asked"] = 1
    twin = copied(record)
    assert twin == record
    assert vars(twin) == {"one": 3}


class Meeting:
    """Two of them make their values only together."""

    barrier = Barrier(2)

    @cached_property
    def met(self) -> list[int]:
        """Which of the two came first."""
        return [self.barrier.wait(timeout=10)]


def test_two_threads_make_values_of_two_instances_at_once_and_each_stays():
    some = [Meeting(), Meeting()]
    with ThreadPoolExecutor(2) as threads:
        made = list(threads.map(lambda one: one.met, some))
    assert sorted(made) == [[0], [1]]
    assert all(one.met is first for one, first in zip(some, made, strict=True))
    assert isinstance(Meeting.met, cached_property)


def test_a_record_begins_with_what_its_caller_knows_and_with_what_another_has():
    first = begun_with(Meeting(), met=[3])
    assert first.met == made_of(first, "met") == [3]
    assert begun_like(Meeting(), first, "met").met is first.met
    assert made_of(begun_like(Meeting(), Meeting(), "met"), "met") is None


def test_a_record_begins_with_no_property_that_it_does_not_have():
    with pytest.raises(TypeError, match="Record: expected a cached property, found one"):
        begun_with(Record(3), one=4)
