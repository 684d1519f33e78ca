"""What a podgroup is as its tasks come and go: whether it was ever whole, and since when it has been broken."""

from typing import Any

import numpy as np

from pipeline.cluster.arrays import Counts, Rows
from pipeline.cluster.tables import BOUND, PHASE_RUNNING, RUNNING, SUCCEEDED
from pipeline.kernels import kernel


@kernel
def runs(status: int) -> int:
    """1 for a task that an eviction can take: Bound or Running."""
    return int(status == RUNNING) + int(status == BOUND)


@kernel
def counts(status: int) -> int:
    """1 for a task that counts towards a minimum: Bound, Running or Succeeded."""
    return int(status == RUNNING) + int(status == BOUND) + int(status == SUCCEEDED)


@kernel
def settle(
    group: int, at: float, minimum: Counts, ready: Counts, running: Counts, history: tuple[Any, Any, Any]
) -> None:
    """Bring ``history`` (phase, ``started``, ``stale_since``) of one podgroup up to date with its counts, in place.

    It is whole with its minimum (at least one task) Bound, Running or Succeeded. Once it was whole it is stale while
    some of its tasks run and it is not whole. A podgroup without running tasks is not stale: there is nothing to clear.
    """
    phase, started, stale = history
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
def settle_all(
    groups: Rows, at: float, minimum: Counts, ready: Counts, running: Counts, history: tuple[Any, Any, Any]
) -> None:
    """Do the same for several podgroups at one time."""
    for group in groups:
        settle(group, at, minimum, ready, running, history)
