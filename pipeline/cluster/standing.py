"""What a podgroup is as its tasks come and go: whether it ever was whole, and since when it has been below its minimum."""

import numpy as np

from pipeline.cluster.tables import PHASE_RUNNING
from pipeline.compiled import kernel


@kernel
def settle(group, at, minimum, ready, running, phase, started, stale):  # type: ignore[no-untyped-def]
    """Bring phase, ``started`` and ``stale_since`` of one podgroup up to date with its counts, in place.

    It is whole with its minimum (at least one task) Bound, Running or Succeeded. Once it was whole it is stale while
    some of its tasks run and it is not whole. A podgroup of which nothing runs is not stale: there is nothing to clear.
    """
    if ready[group] >= max(minimum[group], 1):
        phase[group] = PHASE_RUNNING
        if np.isnan(started[group]):
            started[group] = at
        stale[group] = np.nan
    elif running[group] == 0:
        stale[group] = np.nan
    elif np.isnan(stale[group]) and (phase[group] == PHASE_RUNNING or not np.isnan(started[group])):
        stale[group] = at


@kernel
def settle_all(groups, at, minimum, ready, running, phase, started, stale):  # type: ignore[no-untyped-def]
    """The same for several podgroups at one time."""
    for group in groups:
        settle(group, at, minimum, ready, running, phase, started, stale)
