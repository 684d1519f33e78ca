"""A process that is told to end ends soon: in order if it can, at once if nothing is lost by it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
PROGRAM = """
import logging, subprocess, sys, time
from actors.processes import scratch
from actors.processes.ending import EndSignals
logging.basicConfig()
ending = EndSignals(limit_s=2.5)
ending.listen()
ending.settle(sys.argv[1] != "busy")
child = subprocess.Popen(["sleep", "60"])
print(scratch.make("ending-"), child.pid, flush=True)
ending.told.wait()
if sys.argv[1] == "orderly":
    child.kill(); scratch.remove_all(); ending.done(); sys.exit(0)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("how", "code", "least_s", "most_s"), [("orderly", 0, 0.0, 1.4), ("settled", 0, 1.4, 2.4), ("busy", 1, 2.4, 4.5)]
)
def test_one_signal_ends_it_with_its_children_and_its_folders(
    how: str, code: int, least_s: float, most_s: float
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder, child = process.stdout.readline().split()
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == code
    took_s = time.monotonic() - began
    _, said = process.communicate()
    assert least_s <= took_s <= most_s
    assert not Path(folder).exists()
    stat = Path(f"/proc/{child}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
    assert ("not ended after 2.5 s: 1 processes are killed" in said) == (how == "busy")
