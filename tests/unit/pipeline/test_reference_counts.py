"""Kernels count no references to arguments where these only lend them, and neither leak nor free what others hold."""

import gc
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

from pipeline.reference_counts import uncounted
from tests.support.counted_kernels import imported, settled

SOURCE = """
from typing import NamedTuple
import numpy as np
from pipeline.kernels import inlined, kernel, linked

class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray

@inlined
def _at(pair, at):
    some = pair.left[at:]
    return some[0] + pair.right[at]

@linked
def _kept(pair, at):
    return pair.right[at:] if at % 2 else pair.left

@kernel
def lent(pair):
    total = 0
    for at in range(len(pair.left)):
        total += _at(pair, at)
    return total

@kernel
def chosen(pair):
    total, some = 0, pair.left
    for at in range(len(pair.left)):
        some = pair.right if at % 3 else some[:-1]
        total += some.sum() + _kept(pair, at)[0]
    return total

@kernel
def shortened(pair):
    left, total = pair.left, 0
    while len(left) > 0:
        left = left[1:]
        total += len(left) + pair.right[0]
    return total

@linked
def _until(pair, most):
    total, left = 0, pair.left
    for one in pair.right:
        if total > most:
            break
        if one % 2:
            total += left[one % 7]
    return total

@kernel
def named(pair):
    total, right = 0, pair.right
    for at in range(len(pair.left)):
        left = pair.left
        if left[at] % 3 == 0:
            continue
        total += _until(pair, left[at]) + right[at]
    return total

@kernel
def either(pair):
    total, some = 0, pair.left
    for at in range(len(pair.left)):
        some = some if at % 2 else pair.right
        other = some if at % 3 else pair.left.copy()
        total += some[at] - other[0]
    return total

@kernel
def returned(pair):
    return _kept(pair, 0), pair.right

@kernel
def made_of(pair):
    other = Pair(pair.right.copy(), pair.left)
    return Pair(other.left[1:], other.right)

@kernel
def refused(pair):
    for at in range(len(pair.left)):
        if _kept(pair, at)[0] == 3:
            raise ValueError(at)
    return 0
"""


@pytest.fixture(scope="module")
def lending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with imported("lending", SOURCE, tmp_path_factory.mktemp("lending")) as module:
        yield module


@pytest.mark.parametrize("name", ["lent", "chosen", "shortened", "named", "either", "returned", "made_of"])
def test_the_answer_is_that_of_python_and_nothing_is_left(lending: ModuleType, name: str) -> None:
    function: Any = getattr(lending, name)
    pair = lending.Pair(np.arange(5, 12), np.arange(20, 27))
    counts = [sys.getrefcount(one) for one in pair]
    np.testing.assert_equal(function(pair), function.py_func(pair))
    assert settled(lambda: function(pair)) == (0, 0)
    assert [sys.getrefcount(one) for one in pair] == counts


def test_what_is_returned_lives_on_when_the_arguments_have_gone(lending: ModuleType) -> None:
    pair = lending.Pair(np.arange(5, 5000), np.arange(20, 5015))
    first, second = lending.returned(pair)
    made = lending.made_of(pair)
    del pair
    others = [np.full(4995, -1) for _ in range(50)]
    assert (first[0], second[0], made.left[0], made.right[-1], len(others)) == (5, 20, 21, 4999, 50)


def test_an_error_leaves_arguments_as_they_were(lending: ModuleType) -> None:
    pair = lending.Pair(np.array([1, 1, 1]), np.array([2, 3, 3]))
    counts = [sys.getrefcount(one) for one in pair]
    for _ in range(100):
        with pytest.raises(ValueError, match="1"):
            lending.refused(pair)
    gc.collect()
    assert [sys.getrefcount(one) for one in pair] == counts


CODE = """
declare void @NRT_incref(ptr)
declare void @NRT_decref(ptr)
declare i32 @other(ptr)
declare ptr @made()

define i32 @lends(ptr %arg.a.0, ptr %arg.b.0, ptr %arg.b.00) {
  tail call void @NRT_incref(ptr nonnull %arg.a.0)
  %x = call i32 @other(ptr %arg.a.0)
  call void @NRT_decref(ptr %arg.a.0)
  call void @NRT_incref(ptr %arg.b.00)
  ret i32 %x
}

define ptr @keeps(ptr %arg.a.0, ptr %arg.b.0, i1 %c) {
  call void @NRT_incref(ptr %arg.a.0)
  call void @NRT_incref(ptr %arg.b.0)
  %one = select i1 %c, ptr %arg.a.0, ptr null
  ret ptr %one
}

define i32 @names(ptr %arg.a.0, ptr %arg.b.0, i1 %c) {
begin:
  br i1 %c, label %then, label %end
then:
  call void @NRT_incref(ptr %arg.a.0)
  call void @NRT_incref(ptr %arg.b.0)
  br label %end
end:
  %name = phi ptr [ null, %begin ], [ %arg.a.0, %then ]
  %"$quoted.1" = phi ptr [ null, %begin ], [ %arg.b.0, %then ]
  %x = call i32 @other(ptr %name)
  call void @NRT_decref(ptr %name)
  call void @NRT_decref(ptr %"$quoted.1")
  ret i32 %x
}

define i32 @owns(ptr %arg.a.0, ptr %arg.b.0, i1 %c) {
begin:
  %one = call ptr @made()
  call void @NRT_incref(ptr %arg.b.0)
  br i1 %c, label %then, label %end
then:
  call void @NRT_incref(ptr %arg.a.0)
  br label %end
end:
  %name = phi ptr [ %one, %begin ], [ %arg.a.0, %then ]
  call void @NRT_decref(ptr %name)
  call void @NRT_decref(ptr %arg.b.0)
  ret i32 0
}
"""


@pytest.fixture(scope="module")
def functions() -> dict[str, str]:
    """The functions of `CODE`, each without the counts that are taken out."""
    made = str(uncounted(llvm.parse_assembly(CODE))).split("define")[1:]
    return {some.split("(")[0].split("@")[1]: some for some in made}


def test_arguments_that_are_only_given_to_others_are_not_counted(functions: dict[str, str]) -> None:
    assert "ref(" not in functions["lends"]


def test_an_argument_that_is_returned_is_counted_and_no_other(functions: dict[str, str]) -> None:
    assert functions["keeps"].count("@NRT_incref(ptr %arg.a.0)") == 1
    assert "ref(ptr %arg.b.0)" not in functions["keeps"]


def test_an_argument_with_a_name_in_one_branch_is_not_counted_under_either(functions: dict[str, str]) -> None:
    assert "ref(" not in functions["names"]


def test_an_argument_is_counted_where_its_name_may_stand_for_what_the_function_owns(functions: dict[str, str]) -> None:
    assert functions["owns"].count("@NRT_incref(ptr %arg.a.0)") == 1
    assert functions["owns"].count("@NRT_decref(ptr %name)") == 1
    assert "ref(ptr %arg.b.0)" not in functions["owns"]
