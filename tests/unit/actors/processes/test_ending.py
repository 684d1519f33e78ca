"""A process that is told to end ends soon: in order if it can, at once if nothing is lost by it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actors.processes.tree import runs

ROOT = Path(__file__).parents[4]
PROGRAM = """
import ctypes, logging, os, signal, subprocess, sys, time
from actors.processes import scratch
from actors.processes.ending import EndSignals
logging.basicConfig()
ending = EndSignals(limit_s=2.5)
ending.__enter__()
ending.settle(sys.argv[1] in ("orderly", "settled"))
child = subprocess.Popen(["sleep", "60"])
orphan = subprocess.check_output(["sh", "-c", "sleep 60 >/dev/null & echo $!"], text=True).strip()
if sys.argv[1] == "replaced":
    signal.signal(signal.SIGTERM, lambda *_: None)
folder = scratch.make("ending-")
print(folder, child.pid, orphan, flush=True)
if sys.argv[1] == "in a library":
    signal.siginterrupt(signal.SIGTERM, False)
    ctypes.CDLL(None).read(os.pipe()[0], ctypes.create_string_buffer(1), 1)
ending.told.wait()
if sys.argv[1] == "orderly":
    scratch.remove(folder)
    folder.mkdir()  # as by a process of Ray's that began to start before it was killed
    ending.__exit__(None); sys.exit(0)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("how", "code", "least_s", "most_s"),
    [
        ("orderly", 0, 0.0, 1.4), ("settled", 0, 1.4, 2.4), ("busy", 1, 2.4, 4.5),
        ("in a library", 1, 2.4, 4.5), ("replaced", 1, 2.4, 4.5),
    ],
)  # fmt: skip
def test_one_signal_ends_it_with_its_children_and_its_folders(
    how: str, code: int, least_s: float, most_s: float
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder, *children = process.stdout.readline().split()
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == code
    took_s = time.monotonic() - began
    _, said = process.communicate()
    assert least_s <= took_s <= most_s
    assert not Path(folder).exists()
    assert not any(runs(int(child)) for child in children)
    assert ("not ended after 2.5 s: 2 processes were killed" in said) == (code == 1)
