"""What is compiled when Python calls a kernel, and what when a kernel calls another; what is on disk."""

import cProfile
import importlib.util
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core import event
from numba.core.errors import TypingError

from pipeline.kernels import writing
from tests.support.compiling import Compilations

SOURCE = """
from typing import NamedTuple

import numpy as np
from pipeline.kernels import inlined, kernel, linked, writing

@linked
def picked(values, at):
    if at < 0:
        raise IndexError(at)  # made from a constant and a value
    return values[at]

@inlined
def doubled(value):
    return 2 * value

@kernel
def summed(values, at):
    return doubled(picked(values, at)) + picked(values, 0) + picked(values, values[0])

@kernel
def cleared_in_secret(values):
    values[:] = 0

@writing("values")
def cleared(values, but):
    values[~but] = 0

class Ends(NamedTuple):
    first: np.ndarray
    last: np.ndarray

@kernel
def ends(values):
    return Ends(values[:1].copy(), values[-1:].copy())

@kernel
def last(of):
    return of.last[-1]

@kernel
def summed_twice(values, at):
    return summed(values, at) + summed(values, at)
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Iterator[list[str]]:
    """The names of what is compiled for Python."""
    said = Compilations()
    with event.install_listener("numba:compile", said):
        (tmp_path / "said.py").write_text(SOURCE)
        yield said.names
    sys.modules.pop("said", None)


def module(folder: Path) -> ModuleType:
    """The module as a process would import it that has just started."""
    spec = importlib.util.spec_from_file_location("said", folder / "said.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["said"] = made
    spec.loader.exec_module(made)
    return made


def kept(folder: Path) -> set[str]:
    return {file.name.split(".")[1].split("-")[0] for file in folder.rglob("*.nbc")}


def test_only_what_python_calls_is_compiled_and_kept(tmp_path: Path, compiled: list[str]) -> None:
    said = module(tmp_path)
    assert said.summed_twice(np.array([1, 5, 7]), 2) == 40
    assert [name for name in compiled if hasattr(said, name)] == ["summed_twice"]
    assert kept(tmp_path) == {"summed_twice"}


@pytest.mark.usefixtures("compiled")
def test_kernels_are_linked_with_one_version_for_all_integers(tmp_path: Path) -> None:
    said = module(tmp_path)
    assert said.summed(np.array([1, 5, 7], np.int32), 2) == 20
    assert len(said.picked._linked) == 1


def test_the_next_process_loads_what_is_on_disk(tmp_path: Path, compiled: list[str]) -> None:
    values = np.array([1, 5, 7])
    values.flags.writeable = False
    first = module(tmp_path).summed(values, 2)
    del compiled[:]
    said = module(tmp_path)
    assert (said.summed(values, 2), compiled) == (first, [])
    assert said.summed.processors() == [said.summed.targetctx.codegen().magic_tuple()]


def test_one_machine_code_takes_columns_that_are_read_only_and_others(tmp_path: Path, compiled: list[str]) -> None:
    for _ in ("compiled", "loaded"):
        said, values = module(tmp_path), np.array([1, 5, 7])
        assert said.last(said.Ends(values, values)) == 7
        values.flags.writeable = False
        assert said.last(said.Ends(values, values)) == 7
    assert compiled.count("last") == 1


@pytest.mark.usefixtures("compiled")
def test_after_two_threads_have_called_a_kernel_first_none_looks_for_its_code_again(tmp_path: Path) -> None:
    said, values, both_here = module(tmp_path), np.array([1, 5, 7]), threading.Barrier(2)
    summed, compile_it = said.summed, said.summed.compile

    def compiled_by_both(sig: Any) -> Any:
        both_here.wait(10)
        return compile_it(sig)

    summed.compile = compiled_by_both
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(summed, [values] * 2, [2, 2])) == [20, 20]
    del summed.compile
    profile = cProfile.Profile()
    assert profile.runcall(summed, values, 2) == 20
    assert not any("_compile_for_args" in str(one.code) for one in profile.getstats())


def test_a_kernel_writes_to_no_argument_that_it_does_not_name(tmp_path: Path, compiled: list[str]) -> None:
    said, values, but = module(tmp_path), np.array([1, 5, 7]), np.array([True, False, False])
    with pytest.raises(TypingError, match="readonly"):
        said.cleared_in_secret(values)
    for _ in ("writable", "read only"):
        said.cleared(values, but)
        but.flags.writeable = False
    assert (values.tolist(), compiled.count("cleared")) == ([1, 0, 0], 1)


def test_a_kernel_names_only_arguments_that_it_has() -> None:
    def taken(rooms: int) -> int:
        return rooms

    with pytest.raises(ValueError, match="'room'"):
        writing("room")(taken)


@pytest.mark.usefixtures("compiled")
def test_what_a_kernel_is_linked_with_raises_its_own_exceptions(tmp_path: Path) -> None:
    for _ in ("compiled", "loaded"):
        said = module(tmp_path)
        with pytest.raises(IndexError, match="-3"):
            said.summed_twice(np.array([1, 5, 7]), -3)


@pytest.mark.usefixtures("compiled")
def test_the_classes_of_an_answer_are_not_looked_up_at_each_call(tmp_path: Path) -> None:
    for _ in ("compiled", "loaded"):
        said, profile = module(tmp_path), cProfile.Profile()
        said.ends(np.array([1, 5, 7]))
        answer = profile.runcall(said.ends, np.array([1, 5, 7]))
        assert answer._asdict() == {"first": np.array([1]), "last": np.array([7])}
        assert not any("unpickle" in str(one.code) for one in profile.getstats())
