"""Names for what a function is lent are not counted, and what it gives away or owns is; no sizes of slices are said."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pipeline.machine_code import MachineCode
from tests.support.counted_kernels import imported, settled

SOURCE = """
from typing import NamedTuple
import numpy as np
from pipeline.kernels import inlined, kernel, linked, writing

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

@inlined
def _at(parts, at):
    (left, right), least = parts
    same = left if at % 2 else right
    return same[at] + right[0] * least

@kernel
def read_by_place(parts):
    total = 0
    for at in range(len(parts[0][0])):
        total += _at(parts, at) + parts[0][-1][at]
    return total

@linked
def _until(inner, most):
    total, left = 0, inner.left
    for one in inner.right:
        if total > most:
            break
        if one % 2:
            total += left[one % 7]
    return total

@kernel
def read_in_branches(outer):
    total, right = 0, outer.inner.right
    for at in range(len(outer.inner.left)):
        left = outer.inner.left
        if left[at] % 3 == 0:
            continue
        same = left if at % 2 else right
        total += _until(outer.inner, left[at]) + same[at]
    return total

@kernel
def read_with_names_at_once(outer):
    total, left, right, least, inner = 0, outer.inner.left, outer.inner.right, outer.least, outer.inner
    for at in range(len(left)):
        same, other, more = left, inner.right, least
        total += same[at] - other[0] * more
    return total

@linked
def _kept(inner, at):
    return inner.right[at:] if at % 2 else inner.left

@kernel
def chosen(outer):
    total, some = 0, outer.inner.left
    for at in range(len(outer.inner.left)):
        some = outer.inner.right if at % 3 else some[:-1]
        other = some if at % 5 else outer.inner.left.copy()
        filled = np.full(len(other), -at)  # in the room of what is no longer kept
        total += some[0] - other[-1] + filled[0] + _kept(outer.inner, at)[0]
    return total

@kernel
def shortened(outer):
    left, total = outer.inner.left, 0
    while len(left) > 0:
        left = left[1:]
        total += len(left) + outer.inner.right[0]
    return total

@kernel
def refused(outer):
    for at in range(len(outer.inner.left)):
        if _kept(outer.inner, at)[0] == 91:
            raise ValueError(at)
    return 0

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
    return left[least] + right[least], left, outer[0], inner[-1][1:]

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


@pytest.mark.parametrize("name", ["read", "read_by_place", "read_in_branches", "read_with_names_at_once"])
def test_a_function_that_only_reads_what_it_is_lent_counts_nothing(
    lowered: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    said, taken_in = list[str](), MachineCode.add_llvm_module

    def seen(code: MachineCode, module: Any) -> None:
        taken_in(code, module)
        said.append(str(code._final_module))

    monkeypatch.setattr(MachineCode, "add_llvm_module", seen)
    given: Any = outer(lowered, 1)
    if name == "read_by_place":
        given = tuple(given.inner), given.least
    function = getattr(lowered, name)
    assert function(given) == function.py_func(given)
    bodies = [one for text in said for one in text.split("define ") if f"@_ZN7lowered{len(name)}{name}" in one[:200]]
    assert len(bodies) > 0
    assert not any("NRT_" in body for body in bodies)


@pytest.mark.parametrize(
    "name", ["read", "read_in_branches", "chosen", "shortened", "with_two_meanings", "returned", "made_of", "unpacked"]
)
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


def test_an_error_leaves_arguments_as_they_were(lowered: ModuleType) -> None:
    given = outer(lowered, 1)
    counts = [sys.getrefcount(one) for one in given.inner]
    for _ in range(100):
        with pytest.raises(ValueError, match="1"):
            lowered.refused(given)
    gc.collect()
    assert [sys.getrefcount(one) for one in given.inner] == counts


def test_a_slice_of_another_size_is_refused_and_no_sizes_are_said(lowered: ModuleType) -> None:
    values = np.arange(5)
    assert lowered.assigned(values, values[1:]).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="of different size"):
        lowered.assigned(values, values[2:])
