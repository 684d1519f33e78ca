"""A process that we start ends with us, also where we are killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actors.processes.bound import end_with_parent, start_bound

ROOT = Path(__file__).parents[4]
#: A worker ends within this many seconds, also on a busy machine.
LIMIT_S = 60.0
POOL = """
import os, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from actors.processes.bound import end_with_parent
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=end_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    threading.Event().wait()
"""
#: The service waits for a broker that does not answer.
SERVICE = """
import threading
from pathlib import Path
from actors.processes.service_process import ServiceProcess
service = ServiceProcess(Path(__file__).with_name("log"), "--redis-url", "redis://127.0.0.1:1/0", settings={})
print(service.process.pid, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("text", [POOL, SERVICE], ids=["worker of a pool", "service"])
def test_what_a_process_starts_ends_with_it(text: str, end: signal.Signals, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, str(program)], env=environment, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        started = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(end)
    ended, _, _ = select.select([started], [], [], LIMIT_S)
    os.close(started)
    assert ended, "it outlived the process that started it"


def test_a_process_that_is_no_worker_cannot_be_bound_like_one() -> None:
    with pytest.raises(RuntimeError, match="expected a worker of a pool"):
        end_with_parent()


def test_what_no_program_can_be_given_is_refused_and_not_waited_for() -> None:
    with pytest.raises(ValueError, match="null byte"):
        start_bound(sys.executable, "a\0b")
