"""The demo's view on terminals of several widths: all of it is there, and nothing is cut but what is said to be."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ

import pytest

ROOT = Path(__file__).parents[4]
DRAW = """
from actors.cli.live_view import LiveView, Pulse
from actors.protocol.bodies import Eviction, Nomination, PlanCommitted
from actors.protocol.envelopes import Message

def made(at):
    evictions = tuple(Eviction(task=f"default/a-{n}", incarnation=0) for n in range(267))
    promised = tuple(Nomination(task=f"arrivals/b-{n}", node="n") for n in range(128))
    promised += tuple(Nomination(task=f"arrivals/c-{n}", node=None) for n in range(64))
    cost = {"gangs_broken": 29, "lost_work": 42.5, "evicted_to_requested/gpu-milli": 1.806}
    body = PlanCommitted(plan_id=f"p{at}", epoch=1, action="reclaim", preemptor=f"arrivals/gang-{at:03d}",
                         domain="spine-10", evictions=evictions, nominations=promised, cost=cost)
    return Message("plan_committed", f"p{at}", at, body, f"{at}-0", 0)

waits = {f"gang-{at:03d}": "the queue may not take more" for at in range(90, 97)}
pulse = Pulse(0.4, 0.951, 22, waits, 15, {"events": (3, 0.1), "decisions": (0, 0.0)}, {"prod": 4321.0, "spot": 765.5})
view = LiveView(lambda: pulse)
view.say("A fleet of 1,523 nodes")
with view.running():
    for at in range(20):
        view.show(made(at))
"""


def shown(width: int) -> list[str]:
    """What stands on a terminal of this width at the end, line by line."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, pack("HHHH", 40, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    environment = {key: value for key, value in environment.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", DRAW], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65_536):
            said += piece
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(ours)
    assert process.wait(60) == 0, said.decode()
    # Where the cursor goes up, a view is drawn anew: what follows stands on another line.
    lines = re.sub(r"\x1b\[[0-9]*A", "\n", said.decode())
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", lines))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_view_fits_and_shows_all_of_it(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for part in (
        "A fleet of 1,523 nodes", "GPUs 95.1%   gangs arrived 22, running 15   decisions 20, victims 5340", "100%",
        "GPUs held by queue: prod 4,321   spot 766", "unread: events 3 (0.1 s)", "starving: 7, the first of them",
        "  gang-090: the queue may not take more", "evict 267, promise 128",
    ):  # fmt: skip
        assert part in text, part
    assert ("29 gangs broken, 42.5 gang-hours lost" if width > 110 else "29, 42.5") in lines[-2]
    assert ("gang-hours lost, evicted to requested 1.806 of GPUs" in lines[-2]) == (width > 150)
    above = [line for line in lines if re.match(r" *[0-9.]+ s  reclaim ", line)]
    assert [line.split()[3] for line in above] == [f"gang-{at:03d}" for at in range(8)], "what has left the table"
