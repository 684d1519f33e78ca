"""The nodes of a domain while victims are tried, and what came of it: records that kernels take, as in ``bundling``."""

from typing import NamedTuple

from pipeline.cluster.arrays import Bools, Ids, Longs
from pipeline.placement.layout.region_slots import RegionSlots
from pipeline.solvers.bundles.bundling.records import Bundles, Cost, Units


class Ground(NamedTuple):
    """A slice of nodes while victims are tried; the last six columns change in place.

    Attributes
    ----------
    first
        The slice begins at this node.
    node, shape: int32[M]
        Of the tasks, by entry.
    held: int64[shapes, R]
        What a task of each shape holds.
    request: int64[S, R]
    wanted: int64[S]
    allowed: bool[S, N]
        For each shape of the need: what a task asks for, how many tasks, the nodes open to them.
    scarce
        As in ``Site``.
    room: int64[n, R]
    slots: int64[S, n]
        Per node, at most ``wanted``.
    total: int64[S]
        Their sums.
    usable: int64[n]
        How much of the scarce resource tasks of all shapes together can take at most; no rows for one shape.
    spare: int64[1]
        Their sum, less what the need asks for.
    by_region
        The same where parts of the need go into one region each.
    """

    first: int
    node: Ids
    shape: Ids
    held: Longs
    request: Longs
    wanted: Longs
    allowed: Bools
    scarce: int
    room: Longs
    slots: Longs
    total: Longs
    usable: Longs
    spare: Longs
    by_region: RegionSlots


class Outcome(NamedTuple):
    """The victims of one domain: bundles, their units, which of these returned, and the cost of the others.

    If they do not make room (not ``found``), the other fields mean nothing.
    """

    found: bool
    bundles: Bundles
    units: Units
    returned: Bools
    cost: Cost
