"""The program as a process: its exit codes, and what becomes of output that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from actors.cli.main import main

UNWRITTEN = "clearway: standard output: expected a stream that can be written, found"


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of a shell in which ``clearway`` is the program."""
    text = f'clearway() {{ "{sys.executable}" -m actors "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", text], capture_output=True, check=False, env=os.environ | variables)


@pytest.mark.parametrize(
    ("command", "to", "found"),
    [("schema", ">/dev/full", ": [Errno 28] No space left on device"), ("--version", ">&-", " it closed")],
)
def test_output_that_cannot_be_written_ends_with_two_and_one_sentence(command: str, to: str, found: str) -> None:
    ended = shell(f"clearway {command} {to}")
    assert (ended.returncode, ended.stderr.decode()) == (2, f"{UNWRITTEN}{found}\n")


@pytest.mark.parametrize(
    "line",
    [
        "clearway simulate nowhere.yaml 2>/dev/full",
        "clearway simulate nowhere.yaml 2>&-",
        "echo 'actions: none' | clearway import volcano-config - 2>&-",
    ],
)
def test_a_refusal_that_cannot_be_written_ends_with_two(line: str) -> None:
    ended = shell(line)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, b"", b"")


def test_ctrl_c_while_modules_are_imported_ends_without_a_traceback() -> None:
    text = """
import os, signal, sys
from actors.__main__ import run

class Interrupts:
    def find_spec(self, name, path, target=None):
        if name == "actors.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
run()
"""
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")


def test_help_for_a_full_disk_is_refused_too() -> None:
    ended = shell("clearway --help >/dev/full")
    assert (ended.returncode, ended.stderr.count(b"\n")) == (2, 1)


def test_that_there_is_no_reader_any_more_is_no_mistake() -> None:
    ended = shell("clearway schema | true; exit ${PIPESTATUS[0]}")
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_standard_input_that_is_closed_is_refused() -> None:
    ended = shell("clearway simulate - <&-")
    assert (ended.returncode, ended.stderr.count(b"\n")) == (2, 1)
    assert b"expected standard input, found it closed" in ended.stderr


def test_output_is_utf_8_whatever_the_environment_says(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("{version: 1, id: élastique-模型, nodes: [], queues: [], podgroups: []}", encoding="utf-8")
    ended = shell(f"clearway simulate '{file}'", PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert '"id":"élastique-模型"' in ended.stdout.decode("utf-8")


def test_ctrl_c_inside_compiled_code_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:  # as CPython tells that compiled code returned with an exception set
            raise SystemError("returned a result with an exception set") from cause

    monkeypatch.setattr("actors.cli.main.app", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, *capsys.readouterr()) == (130, "", "")


def test_other_errors_are_not_taken_for_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise SystemError("broken")

    monkeypatch.setattr("actors.cli.main.app", broken)
    with pytest.raises(SystemError, match="broken"):
        main()
