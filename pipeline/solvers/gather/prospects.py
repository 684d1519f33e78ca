"""Domains that could take a gang once every candidate has left, the least harmful first."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.solvers.gather.leaving.search import GatherSearch
from pipeline.solvers.gather.offers import offers_of
from pipeline.solvers.gather.tree import tree_of


class Prospect(NamedTuple):
    """A domain that could take a gang; they are searched in this order.

    Attributes
    ----------
    highest
        The priority up to which candidates must leave, as far as is known.
    slots
        Its slots if all left.
    lawful
        See `GatherSearch`.
    """

    highest: int
    slots: int
    domain: int
    lawful: bool


def hopeful(search: GatherSearch, domains: Rows, limit: int) -> list[Prospect]:
    """Domains and their slots, the tightest first; of very many only those that need the fewest evictions.

    A domain that needs only victims of lower priority comes before one that needs higher ones.
    """
    snapshot, need = search.snapshot, search.need
    rows = np.flatnonzero(search.candidate)
    node, priority = (
        snapshot.tasks.node[rows].astype(np.int64),
        snapshot.podgroups.priority[snapshot.tasks.podgroup[rows]],
    )
    free = search.room
    slots, enough = _slots(search, free)
    missing = np.maximum(need.minimum - slots[domains], 0)
    level = np.where(enough[domains], np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    for value in search.priorities:
        if (level < np.iinfo(np.int64).max).all():
            break
        leaving = priority == value
        search.add_held(rows[leaving], free, node[leaving])
        slots, enough = _slots(search, free)
        level = np.where((level == np.iinfo(np.int64).max) & enough[domains], value, level)
    reachable = np.flatnonzero(level < np.iinfo(np.int64).max)
    order = np.lexsort((domains[reachable], slots[domains[reachable]], missing[reachable], level[reachable]))
    chosen = reachable[order[: limit or len(order)]]
    chosen = chosen[np.lexsort((domains[chosen], slots[domains[chosen]], level[chosen]))]
    columns = level[chosen], slots[domains[chosen]], domains[chosen], search.lawful[domains[chosen]]
    return [Prospect(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]


def raised(search: GatherSearch, prospect: Prospect) -> Prospect | None:
    """The prospect if more important candidates must leave than was known; None if there are none."""
    higher = next((one for one in search.priorities if one > prospect.highest), None)
    return None if higher is None else prospect._replace(highest=higher)


def _slots(search: GatherSearch, room: Longs) -> tuple[Longs, Bools]:
    """int64[V] slots of each vertex, and bool[V] whether it could take the whole gang."""
    offers = offers_of(search.snapshot.once(tree_of), search.kinds, room, search.existing, search.steps)
    return offers.slots, offers.enough
