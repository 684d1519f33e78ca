"""What victims leave below the limits of a queue: counted in columns, it is what the plugins say once they have gone.

More seeds by

    python -m tests.property.test_counted_limits 0 2000
"""

import random
import sys

import numpy as np

from actors.cli.simulate import open_case
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.headroom import limits_of, room_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from tests.property.test_dealing_below_limits import below_limits
from tests.support.seeds import compare

SEEDS = range(60)


def defect_of(seed: int) -> str | None:
    """A difference between what is counted and what is said; None if there is none."""
    case, rng = open_case(below_limits(seed)), random.Random(seed)
    snapshot = case.snapshot
    host = Host(Context(snapshot, case.policy, case.now))
    running = np.flatnonzero(snapshot.tasks.node >= 0)
    some = np.sort(np.array(rng.sample(running.tolist(), rng.randint(0, len(running))), np.int64))
    last = len(snapshot.podgroups) - 1
    limits = limits_of(host, last)
    counted = limits.left_by(snapshot, some).min(axis=0)
    said = room_of(host.on(WhatIf.of(snapshot).evicting(some), some), snapshot, last)
    if not limits.counted:
        return "the limits are not told"
    bound = said < 2**40  # beyond, there is no limit
    return None if (counted[bound] == said[bound]).all() else f"{counted} {said}"


def test_what_victims_leave_below_limits_is_counted_as_the_plugins_say_it() -> None:
    wrong = {seed: found for seed in SEEDS if (found := defect_of(seed))}
    assert not wrong


if __name__ == "__main__":
    sys.exit(compare(defect_of, int(sys.argv[1]), int(sys.argv[2])))
