"""Processes that compile at the same time compile each kernel once."""

import fcntl
from pathlib import Path

import pytest

from actors.warming.machine_code import compile_one_by_one
from pipeline.compiled import Compiled
from pipeline.kernels import kernel


def test_a_kernel_is_compiled_while_its_lock_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def compile_it(self: Compiled, sig: object) -> None:
        (lock,) = tmp_path.iterdir()
        with lock.open("a") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        compiled.append((self.py_func.__name__, sig))

    monkeypatch.setattr(Compiled, "compile", compile_it)
    compile_one_by_one(tmp_path)
    kernel(compile_one_by_one).compile("one signature")
    kernel(compile_one_by_one).compile("another")
    (lock,) = tmp_path.iterdir()
    with lock.open("a") as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert compiled == [("compile_one_by_one", "one signature"), ("compile_one_by_one", "another")]


def test_each_kernel_has_a_lock_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compiled, "compile", lambda self, sig: self.other.compile(sig) if hasattr(self, "other") else 1)
    compile_one_by_one(tmp_path)
    first, second = kernel(test_each_kernel_has_a_lock_of_its_own), kernel(compile_one_by_one)
    first.other = second
    assert first.compile("signature") == 1  # though it holds its lock meanwhile
