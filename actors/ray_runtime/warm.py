"""``clearway warm``: compile every kernel once, so that no later process waits for the compiler."""

import sys
import time
from collections.abc import Sequence

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, generate
from actors.fleets.rehearsal import Rehearsal
from actors.observability.logs import unsaid
from pipeline.decision.attempt import Attempt
from pipeline.policy import Policy, Purpose
from pipeline.propose import propose

#: Nodes of the fleet that the decisions are taken on: small, but with every level of topology.
_NODES = 400
_GANGS = (GangSpec(64), GangSpec(8, gpus=8), GangSpec(2048))
_PROFILES = ("default", "volcano", "kai", "koordinator")


def run() -> int:
    """Decide on small fleets in every way the program knows; the machine code stays on disk."""
    started = time.monotonic()
    decisions = warm_up([load_profile(name) for name in _PROFILES])
    sys.stdout.write(f"kernels compiled and cached in {time.monotonic() - started:.1f} s ({decisions} decisions)\n")
    return 0


def warm_up(policies: Sequence[Policy]) -> int:
    """Take decisions that reach every kernel that these policies use, in every role; how many."""
    decisions = 0
    for policy in policies:
        for queues, purpose in ((0, Purpose.PREEMPT), (2, Purpose.RECLAIM)):
            for gang in _GANGS:
                fleet = generate(_NODES, gang, queues=queues)
                propose(Attempt(fleet.snapshot, policy, purpose, (fleet.gang,), None, NOW))
                decisions += 1
        with unsaid():
            decisions += Rehearsal(policy).play()
    return decisions
