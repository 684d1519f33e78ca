"""Resources as int64 vectors in base units; arithmetic is exact, there is no epsilon.

The axis R is fixed for a snapshot: ``cpu`` (millicores), ``memory`` (bytes), ``pods`` (pieces), then every other
resource in the order of its name.
"""

import numpy as np

from pipeline.cluster.arrays import UNLIMITED, Bools, Longs

CPU, MEMORY, PODS = 0, 1, 2
#: The resources that every snapshot has, in this order, before any other.
ALWAYS = ("cpu", "memory", "pods")


def axis(names: set[str]) -> tuple[str, ...]:
    """Name the resource axis of a cluster in which ``names`` occur."""
    return ALWAYS + tuple(sorted(names.difference(ALWAYS)))


def fits(request: Longs, room: Longs) -> Bools:
    """bool[...]: whether ``request`` int64[..., R] fits ``room`` int64[..., R] in every resource that it asks for.

    A resource that is not asked for does not matter, even where its room is negative (promised twice).
    """
    if request.ndim == 1 and room.ndim > 1:
        asked = (request > 0).nonzero()[0].tolist()
        enough = np.ones(room.shape[:-1], bool)
        for at in asked:  # a long column at a time is several times as fast as many short rows
            enough &= room[..., at] >= request[at]
        return enough
    return np.asarray(((request <= room) | (request <= 0)).all(axis=-1))


def slots(request: Longs, room: Longs) -> Longs:
    """How many tasks of one shape fit each node.

    Parameters
    ----------
    request: int64[R]
        At least one resource is positive (every task takes a pod).
    room: int64[N, R]

    Returns
    -------
    int64[N], never negative.
    """
    fitting = np.full(len(room), UNLIMITED, np.int64)
    for at in (request > 0).nonzero()[0].tolist():  # by one number at a time NumPy divides several times as fast
        np.minimum(fitting, room[:, at] // int(request[at]), out=fitting)
    return np.maximum(fitting, 0)
