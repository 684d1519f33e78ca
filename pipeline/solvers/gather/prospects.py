"""Domains that could take a gang once every candidate has left, the least harmful first."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Longs, Rows
from pipeline.solvers.gather.leaving.search import GatherSearch
from pipeline.solvers.gather.offers import offers_of
from pipeline.solvers.gather.tree import tree_of

#: Below and above every priority.
_LOWEST, _NEVER = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


class Prospect(NamedTuple):
    """A domain that could take a gang; they are searched in this order.

    Attributes
    ----------
    highest
        The priority up to which candidates must leave, as far as is known.
    slots
        Its slots if all left.
    may_be_lawful
        See `GatherSearch`.
    """

    highest: int
    slots: int
    domain: int
    may_be_lawful: bool


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
    free, level, unsure = search.room, np.full(len(domains), _NEVER), np.ones(len(domains), bool)
    slots, enough = _slots(search, free)
    missing = np.maximum(need.minimum - slots[domains], 0)
    _note(search, domains, free, unsure & enough[domains], _LOWEST, level, unsure)
    for value in search.priorities:
        known = bool((level < _NEVER).all())
        leaving = priority >= value if known else priority == value
        search.add_held(rows[leaving], free, node[leaving])
        slots, enough = _slots(search, free)
        if known:
            break
        _note(search, domains, free, unsure & enough[domains], value, level, unsure)
    reachable = np.flatnonzero(level < _NEVER)
    order = np.lexsort((domains[reachable], slots[domains[reachable]], missing[reachable], level[reachable]))
    chosen = reachable[order[: limit or len(order)]]
    chosen = chosen[np.lexsort((domains[chosen], slots[domains[chosen]], level[chosen]))]
    columns = level[chosen], slots[domains[chosen]], domains[chosen], search.may_be_lawful[domains[chosen]]
    return [Prospect(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]


def _note(
    search: GatherSearch, domains: Rows, room: Longs, enough: Bools, value: int, level: Longs, unsure: Bools
) -> None:
    """Note that domains with slots ``enough`` (bool[D]) in the room (int64[N, R']) need a priority at least.

    It is higher where their regions have too little, which stays ``unsure``. ``level``, ``unsure`` change in place.
    """
    level[enough] = value
    unsure[enough] = [not _regions_suffice(search, domain, room) for domain in domains[enough].tolist()]


def _regions_suffice(search: GatherSearch, domain: int, room: Longs) -> bool:
    """Whether regions of a domain may have enough; not asked where slots decide, or priorities do not come first."""
    if search.slots_decide or search.queue_rank is not None:
        return True
    start, stop = search.snapshot.topology.slice_of(domain)
    return search.counted.packings.on(start, stop).may_fit(room[start:stop])


def raised(search: GatherSearch, prospect: Prospect) -> Prospect | None:
    """The prospect if more important candidates must leave than was known; None if there are none."""
    higher = next((one for one in search.priorities if one > prospect.highest), None)
    return None if higher is None else prospect._replace(highest=higher)


def _slots(search: GatherSearch, room: Longs) -> tuple[Longs, Bools]:
    """int64[V] slots of each vertex, and bool[V] whether it could take the whole gang."""
    offers = offers_of(search.snapshot.once(tree_of), search.kinds, room, search.existing, search.steps)
    return offers.slots, offers.enough
