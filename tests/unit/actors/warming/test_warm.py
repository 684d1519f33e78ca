"""That a start must compile is said, and how far it is."""

import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

import actors.warming.warm
import pipeline
from actors.warming.warm import Compiling, write_bytecode
from tests.support.assembly import Clock


def test_the_first_kernel_is_said_and_then_how_many_there_were_now_and_then() -> None:
    said, clock = list[str](), Clock(100.0)
    listener = Compiling(said.append, clock)
    for _ in range(25):
        listener.on_start(None)
        clock.now += 1.0
        listener.on_end(None)
    assert said[0].startswith("kernels are compiled for this processor")
    assert said[1:] == ["10 kernels compiled so far", "20 kernels compiled so far"]


def test_all_sources_become_bytecode_even_where_python_is_told_to_write_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for package in (actors, pipeline):
        folder = tmp_path / package.__name__ / "below"
        folder.mkdir(parents=True)
        (folder / "said.py").write_text("SAID = 1")
        monkeypatch.setattr(package, "__path__", [str(folder.parent)])
    write_bytecode()
    for package in (actors, pipeline):
        assert Path(cache_from_source(str(tmp_path / package.__name__ / "below" / "said.py"))).exists()
