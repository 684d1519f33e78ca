"""Machine code on disk goes when anything goes that it is made from, in whatever file that is."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

from tests.support.compiling import Compilations

LOWER = """
from typing import NamedTuple
from pipeline.kernels import linked

FACTOR = 2

class Pair(NamedTuple):
    first: int
    second: int

@linked
def scaled(value):
    return FACTOR * value
"""
UPPER = """
from pipeline.kernels import kernel
from lower import {pair}, FACTOR, scaled

@kernel
def of_first(pair):
    return scaled(pair.first) + FACTOR

@kernel
def second_of_made(value):
    return {pair}(value, -value).second
"""


def imported(folder: Path, lower: str, pair: str = "Pair") -> Any:
    """The upper module as a process would import it that has just started."""
    for name in ("lower", "upper"):
        sys.modules.pop(name, None)
    (folder / "lower.py").write_text(lower)
    upper = UPPER.format(pair=pair)
    if not (folder / "upper.py").exists() or (folder / "upper.py").read_text() != upper:
        (folder / "upper.py").write_text(upper)
    importlib.invalidate_caches()
    return importlib.import_module("upper")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two versions within one second
    upper = imported(tmp_path, LOWER)
    assert (upper.of_first(upper.Pair(5, 7)), upper.second_of_made(5)) == (12, -5)
    return tmp_path


def compilations(call: Any) -> tuple[Any, list[str]]:
    said = Compilations()
    with event.install_listener("numba:compile", said):
        return call(), [name for name in said.names if name != "scaled"]


def test_what_has_not_changed_is_loaded(folder: Path) -> None:
    upper = imported(folder, "# a comment\n" + LOWER)
    assert compilations(lambda: upper.of_first(upper.Pair(5, 7))) == (12, [])
    assert compilations(lambda: upper.second_of_made(5)) == (-5, [])


def test_a_function_that_a_kernel_calls_has_changed(folder: Path) -> None:
    upper = imported(folder, LOWER.replace("FACTOR * value", "FACTOR * value + 100"))
    assert compilations(lambda: upper.of_first(upper.Pair(5, 7))) == (112, ["of_first"])
    assert compilations(lambda: upper.second_of_made(5)) == (-5, [])


def test_a_constant_has_changed(folder: Path) -> None:
    upper = imported(folder, LOWER.replace("FACTOR = 2", "FACTOR = 3"))
    assert compilations(lambda: upper.of_first(upper.Pair(5, 7))) == (18, ["of_first"])


def test_fields_of_an_argument_have_changed_their_places(folder: Path) -> None:
    upper = imported(folder, LOWER.replace("first: int\n    second: int", "second: int\n    first: int"))
    assert compilations(lambda: upper.of_first(upper.Pair(second=7, first=5))) == (12, ["of_first"])
    assert compilations(lambda: upper.second_of_made(5)) == (5, ["second_of_made"])


def test_a_class_of_an_argument_has_another_name(folder: Path) -> None:
    upper = imported(folder, LOWER.replace("class Pair", "class Two"), "Two")
    assert compilations(lambda: upper.of_first(upper.Two(5, 7))) == (12, ["of_first"])
