"""A set of victims where none is known: what lacks becomes less from step to step, until the gang places.

Bundles leave in one order, and quotas are counted off along it. Where a queue can spare little more than the gang
needs, what comes first in the order may use that up before there is room, although other podgroups would do.
"""

import numpy as np

from pipeline.cluster.arrays import Floats, Rows
from pipeline.kernels import linked
from pipeline.solvers.bundles.bundling.records import Ground
from pipeline.solvers.bundles.covering.local_search.knapsack import break_cheapest, slots_alone
from pipeline.solvers.bundles.covering.local_search.pool import State, VictimPool
from pipeline.solvers.bundles.covering.local_search.recreate import recreate
from pipeline.solvers.bundles.covering.local_search.returning import BestVictims, Scratch, restore, trim
from pipeline.solvers.bundles.covering.local_search.ruin_recreate import NOISE, ruin, swap

#: The slots that a podgroup counts for at least.
_ALONE = 0.25


@linked
def _lacking(ground: Ground) -> int:
    """How many slots lack, of all shapes together."""
    return int(np.maximum(ground.wanted - ground.total, 0).sum())


@linked
def _weigh_by_quota(gain: Rows, taken: Floats, pool: VictimPool, state: State) -> None:
    """Weigh entries by what their queues lose with them, for the slots that this brings.

    ``gain``, ``taken``: see ``break_cheapest``. What brings no slot alone may bring some beside others.
    """
    for g in range(len(pool.owner)):
        for i in range(pool.start[g], pool.start[g + 1]):
            pool.whole[i] = pool.size[i] * taken[g] / max(gain[g], _ALONE)
            pool.single[i] = pool.size[i]
    state.ratio[:] = -1.0


@linked
def any_set(
    steps: int, levels: int, best: BestVictims, pool: VictimPool, state: State, ground: Ground, scratch: Scratch
) -> bool:
    """Look for victims with which the gang places: whether there are some; these are gone then.

    Nothing is gone at first. Then those podgroups break that take least from their queues for the slots that they bring
    alone. In each further step a podgroup breaks that did not, or some victims return; then nodes are cleared, the
    slot that takes least first, as long as quotas allow. A state that lacks more slots than the one before is given up.
    """
    gain, taken = slots_alone(pool, ground), pool.amount[:, pool.scarce].astype(np.float64)
    _weigh_by_quota(gain, taken, pool, state)
    seed, lacking, some = 1, _lacking(ground), False
    for step in range(steps):
        if step == 0:
            break_cheapest(0.0, gain, taken, pool, state, ground)
        elif step % 2 == 1:
            some, seed = swap(step // 2 % levels, seed, pool, state, ground, scratch.some)
        if step > 0 and (step % 2 == 0 or not some):
            some, seed = ruin(step // 2 % levels, seed, pool, state, ground, scratch.some)
        done, seed = recreate(NOISE if step % 3 > 0 else 0.0, seed, pool, state, ground, scratch.rows, scratch.price)
        if done:
            trim(scratch, pool, state, ground)
            return True
        now = _lacking(ground)
        if now <= lacking:
            lacking, best.gone[:], best.broken[:] = now, state.gone, state.broken
        else:
            restore(best, pool, state, ground)
    return False
