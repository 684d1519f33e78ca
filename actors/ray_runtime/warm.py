"""``clearway warm``: compile every kernel once, so that no later process waits for the compiler."""

import sys
import time

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, generate
from pipeline.cycle import cycle
from pipeline.decision.attempt import Attempt
from pipeline.policy import Purpose
from pipeline.propose import propose

#: Nodes of the fleet that the decisions are taken on: small, but with every level of topology.
_NODES = 400


def run() -> int:
    """Decide on small generated fleets in every way the program knows; the machine code stays on disk."""
    started = time.monotonic()
    decisions = warm_up()
    sys.stdout.write(f"kernels compiled and cached in {time.monotonic() - started:.1f} s ({decisions} decisions)\n")
    return 0


def warm_up() -> int:
    """Take decisions that reach every kernel; how many."""
    policy, decisions = load_profile("default"), 0
    for queues, purpose in ((0, Purpose.PREEMPT), (2, Purpose.RECLAIM)):
        for gang in (GangSpec(64), GangSpec(8, gpus=8), GangSpec(2048)):
            fleet = generate(_NODES, gang, queues=queues)
            propose(Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW))
            decisions += 1
    fleet = generate(_NODES, GangSpec(32), queues=2)
    for profile in ("default", "volcano"):
        cycle(fleet.snapshot, load_profile(profile), NOW)
        decisions += 1
    return decisions
