"""The runtime quota: what each queue may use now, given the requests of all queues.

Every queue first gets what it asks for up to its base, the larger of its minimum and its guarantee; what is left over
is shared out by weight among those that ask for more, by largest remainder (Hamilton's method), in rounds: what one
does not need goes to the others. In a tree the runtime quota of a queue is what its children share. What queues without
a statement hold is not there to be shared, as with Koordinator's default and system quotas: nothing takes it back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Bools, Floats, Ids, Longs
from pipeline.cluster.queue_tree import with_descendants
from pipeline.cluster.resources import CPU
from pipeline.cluster.tables import Queues

#: Millicores in a core: cpu is shared out in whole cores if all statements and requests are whole.
_CORE = 1000


@dataclass(frozen=True)
class StatedQuotas:
    """What queues state.

    Attributes
    ----------
    parent: int32[Q]
    least: int64[Q, R]
        Its minimum.
    base: int64[Q, R]
        The larger of minimum and guarantee; never taken away from a queue that asks for it.
    most: int64[Q, R]
        Its maximum.
    kept: int64[Q, R]
        The guarantee, which is not lent even while it is unused; of a parent at least what its children's come to.
    weight: float64[Q, R]
    scales
        Whether the minima of siblings shrink, in proportion, where they are more together than there is to share.
    limited: bool[Q, R]
        Where the queue or one of its ancestors states a quota; elsewhere none binds it.
    free: bool[Q, R]
        Where no descendant states one either: the base of such a queue is what it holds.
    """

    parent: Ids
    least: Longs
    base: Longs
    most: Longs
    kept: Longs
    weight: Floats
    scales: bool
    limited: Bools
    free: Bools

    def base_of(self, siblings: Longs, resource: int, total: int, held: Longs) -> Longs:
        """int64[C]: the base of ``siblings`` (int64[C]) in one resource; they share ``total`` and hold ``held``."""
        least = self.least[siblings, resource]
        together = sum(least.tolist())
        if self.scales and together > total:
            least = np.array([total * one // together for one in least.tolist()], np.int64)
        return np.where(self.free[siblings, resource], held, np.maximum(least, self.kept[siblings, resource]))


def terms_of(queues: Queues, whole: Longs, *, scales: bool = False) -> StatedQuotas:
    """What the queues of a cluster of size ``whole`` (int64[R]) state."""
    least = np.where(queues.deserved >= UNLIMITED, whole, np.maximum(queues.deserved, 0))  # UNSET is below 0
    limited = (queues.deserved != UNSET) | (queues.capability < UNLIMITED) | (queues.guarantee > 0)
    for queue, parent in enumerate(queues.parent.tolist()):  # parents come before children
        if parent != NONE:
            limited[queue] |= limited[parent]
    kept, free = _kept(queues), ~limited
    for queue in range(len(free) - 1, 0, -1):
        if queues.parent[queue] != NONE:
            free[queues.parent[queue]] &= free[queue]
    base = np.maximum(least, kept)
    weight = queues.weight[:, None] * queues.over_quota_weight
    return StatedQuotas(queues.parent, least, base, queues.capability, kept, weight, scales, limited, free)


def _kept(queues: Queues) -> Longs:
    """int64[Q, R]: the guarantees, of a parent at least what those of its children come to."""
    kept, below = queues.guarantee.copy(), np.zeros_like(queues.guarantee)
    for queue in range(len(kept) - 1, -1, -1):
        kept[queue] = np.maximum(kept[queue], below[queue])
        if queues.parent[queue] != NONE:
            below[queues.parent[queue]] += kept[queue]
    return kept


def runtime_quota(terms: StatedQuotas, requested: Longs, held: Longs, whole: Longs) -> Longs:
    """The runtime quota of each queue: int64[Q, R].

    Parameters
    ----------
    requested: int64[Q, R]
        What the tasks of each queue hold, are promised or wait for, without its descendants.
    held: int64[Q, R]
        What they hold or are promised.
    whole: int64[R]
        What there is to share.
    """
    asks, held = _limited(terms, requested), with_descendants(terms.parent, held)
    result = np.zeros_like(asks)
    for parent, children in _families(terms.parent):
        total = whole if parent == NONE else result[parent]
        for resource in range(len(whole)):
            result[children, resource] = _shared(terms, asks, held, children, resource, int(total[resource]))
    return result


def _limited(terms: StatedQuotas, requested: Longs) -> Longs:
    """int64[Q, R]: what each queue asks for with its descendants, at least what it keeps, at most its maximum."""
    asks = requested.copy()
    for queue in range(len(asks) - 1, -1, -1):
        asks[queue] = np.minimum(np.maximum(asks[queue], terms.kept[queue]), terms.most[queue])
        if terms.parent[queue] != NONE:
            asks[terms.parent[queue]] += asks[queue]
    return asks


def _families(parent: Ids) -> Iterator[tuple[int, Longs]]:
    """Each queue that has children, with the children, from the top down."""
    for one in (NONE, *range(len(parent))):
        children = np.flatnonzero(parent == one)
        if len(children):
            yield one, children


def _shared(terms: StatedQuotas, asks: Longs, held: Longs, children: Longs, resource: int, total: int) -> Longs:
    """int64[C]: how much of one resource each of the siblings ``children`` gets of ``total``."""
    wanted, base = asks[children, resource], terms.base_of(children, resource, total, held[children, resource])
    got = np.maximum(np.minimum(wanted, base), terms.kept[children, resource])
    unit = 1
    if resource == CPU and not (np.concatenate([wanted, base, [total]]) % _CORE).any():
        unit = _CORE
    pool, weight = (total - int(got.sum())) // unit, _whole_numbers(terms.weight[children, resource])
    weight = [one if needs else 0 for one, needs in zip(weight, (wanted > got).tolist(), strict=True)]
    while pool > 0 and any(weight):
        pieces = np.array(by_largest_remainder(pool, weight), np.int64)
        offered = np.minimum(pieces * unit, np.maximum(wanted - got, 0))
        got, pool = got + offered, pool - -(-int(offered.sum()) // unit)
        weight = [one if needs else 0 for one, needs in zip(weight, (wanted > got).tolist(), strict=True)]
    return np.asarray(got, np.int64)


def _whole_numbers(weight: Floats) -> list[int]:
    """The weights as whole numbers in the same proportions: nothing is lost to rounding, however large they are."""
    ratios = [one.as_integer_ratio() for one in weight.tolist()]
    common = lcm(*(below for _, below in ratios))
    return [above * (common // below) for above, below in ratios]


def by_largest_remainder(pool: int, weight: Sequence[int]) -> list[int]:
    """All ``pool`` pieces in proportion to ``weight``; ties go to the first."""
    whole = sum(weight)
    pieces, rest = zip(*(divmod(pool * one, whole) for one in weight), strict=True)
    first = sorted((at for at, one in enumerate(weight) if one), key=lambda at: (-rest[at], at))
    lucky = set(first[: pool - sum(pieces)])
    return [many + (at in lucky) for at, many in enumerate(pieces)]
