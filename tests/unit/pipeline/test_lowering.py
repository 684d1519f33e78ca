"""Names for what a function is lent are not counted, and what it gives away or owns is; no sizes of slices are said."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pipeline import machine_code
from tests.support.counted_kernels import imported, settled

SOURCE = """
from typing import NamedTuple
import numpy as np
from pipeline.kernels import kernel, linked, writing

class Inner(NamedTuple):
    left: np.ndarray
    right: np.ndarray

class Outer(NamedTuple):
    inner: Inner
    least: int

@kernel
def read(outer):
    total = 0
    for at in range(len(outer.inner.left)):
        inner = outer.inner
        left = inner.left
        if left[at] > outer.least:
            total += inner.right[at]
    return total

@linked
def _either(outer, other, at):
    inner = outer.inner
    if at % 2:
        inner = Inner(other.inner.right.copy(), other.inner.left)
    return inner

@writing("outer", "other")  # so that what they hold is of the type of a copy of it
def with_two_meanings(outer, other):
    total = 0
    for at in range(len(outer.inner.left)):
        inner = _either(outer, other, at)
        total += inner.left[at] - inner.right[0]
        outer = other
    return total

@kernel
def returned(outer):
    inner = outer.inner
    same = inner
    return outer, same, same.left, inner.right[1:]

@kernel
def made_of(outer):
    inner, some = outer.inner, outer.inner.right
    return Outer(Inner(some, inner.left), outer.least), [inner.left, some]

@kernel
def unpacked(outer):
    inner, least = outer
    left, right = inner
    return left[least] + right[least], left

@kernel
def assigned(values, other):
    made = np.zeros(len(values), np.int64)
    made[1:] = other
    return made
"""


@pytest.fixture(scope="module")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with imported("lowered", SOURCE, tmp_path_factory.mktemp("lowered")) as module:
        yield module


def outer(lowered: ModuleType, first: int) -> Any:
    return lowered.Outer(lowered.Inner(np.arange(first, first + 3000), np.arange(90, 3090)), 2)


def test_a_function_that_only_reads_what_it_is_lent_counts_nothing(
    lowered: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, uncounted = list[str](), machine_code.reference_counts.uncounted

    def seen(module: Any) -> Any:
        said.append(str(module))
        return uncounted(module)

    monkeypatch.setattr(machine_code.reference_counts, "uncounted", seen)
    given = outer(lowered, 1)
    assert lowered.read(given) == lowered.read.py_func(given)
    (body,) = [one for text in said for one in text.split("define ") if "@_ZN7lowered4read" in one.split("(")[0]]
    assert "NRT_" not in body


@pytest.mark.parametrize("name", ["read", "with_two_meanings", "returned", "made_of", "unpacked"])
def test_the_answer_is_that_of_python_and_nothing_is_left(lowered: ModuleType, name: str) -> None:
    function: Any = getattr(lowered, name)
    given = [outer(lowered, first) for first in (1, 7)][: function.py_func.__code__.co_argcount]
    columns = [column for one in given for column in one.inner]
    counts = [sys.getrefcount(one) for one in columns]
    np.testing.assert_equal(function(*given), function.py_func(*given))
    assert settled(lambda: function(*given)) == (0, 0)
    assert [sys.getrefcount(one) for one in columns] == counts


def test_what_is_given_away_lives_on_when_the_arguments_have_gone(lowered: ModuleType) -> None:
    given = outer(lowered, 1)
    whole, same, left, rest = lowered.returned(given)
    made, columns = lowered.made_of(given)
    del given
    others = [np.full(3000, -1) for _ in range(50)]
    assert (whole.inner.left[-1], same.right[-1], left[0], rest[0], len(others)) == (3000, 3089, 1, 91, 50)
    assert (made.inner.left[0], made.inner.right[0], columns[0][0], columns[1][0]) == (90, 1, 1, 90)


def test_a_slice_of_another_size_is_refused_and_no_sizes_are_said(lowered: ModuleType) -> None:
    values = np.arange(5)
    assert lowered.assigned(values, values[1:]).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="of different size"):
        lowered.assigned(values, values[2:])
