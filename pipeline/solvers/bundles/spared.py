"""Why these victims and not others: what other podgroups of the chosen domain would have cost."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Rows
from pipeline.decision.explanation import Reason, Spared, decisive
from pipeline.decision.price import Price, price_of
from pipeline.solvers.bundles.bundling.records import Bundles
from pipeline.solvers.bundles.bundling.terms import Search
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.covering.selection import Selection, bundles_of

#: At most this many are priced, in the policy's order; the others are only counted.
PRICED = 8


class _Taken(NamedTuple):
    """What one podgroup would have lost: its entries in the domain, and whether it would have stayed whole."""

    entry: Rows
    safe: bool


def spared_of(search: Search, selection: Selection) -> tuple[tuple[Spared, ...], int]:
    """The podgroups that had candidates in the chosen domain and lose none there; and how many more there are.

    Each is priced as if it had to lose as many tasks as the plan evicts: from its surplus if that is enough, else as a
    podgroup that breaks.
    """
    domain, victims = selection.price.domain, selection.victims
    if len(victims) == 0:
        return (), 0
    bundles, owner = bundles_of(search, domain), search.snapshot.tasks.podgroup
    podgroups, at = np.unique(bundles.podgroup, return_index=True)
    podgroups = podgroups[np.argsort(at)]
    left = podgroups[~np.isin(podgroups, owner[victims])]
    told = tuple(_spared(search, selection, bundles, group) for group in left[:PRICED].tolist())
    return told, len(left) - len(told)


def _spared(search: Search, selection: Selection, bundles: Bundles, podgroup: int) -> Spared:
    taken, snapshot = _taken(bundles, podgroup, len(selection.victims)), search.snapshot
    domain = selection.price.domain
    rows = snapshot.occupancy.task[taken.entry]
    if search.cluster_wide and not taken.safe:
        rows = np.union1d(rows, _elsewhere(search, podgroup, domain))
    rank = None if search.by_priority else search.queue_rank
    price = price_of(snapshot, rows, search.need.total, search.lost_work, rank, domain)
    return Spared(podgroup, taken.safe, len(rows), _reason(search, selection.price, price, taken.entry, rows), price)


def _reason(search: Search, chosen: Price, price: Price, entry: Rows, rows: Rows) -> Reason:
    """Why they were not taken; ``entry`` are their tasks in the domain, ``rows`` all of them."""
    if price >= chosen:
        return Reason.COSTLIER if decisive(chosen, price) else Reason.EQUAL
    together = np.zeros(len(rows), np.int64)
    if search.quota_filter is not None and not search.quota_filter(rows, together).all():
        return Reason.VETOED
    if search.validate_set is not None and not search.validate_set(rows):
        return Reason.ILLEGAL
    return Reason.OUTRANKED if _enough(search, chosen.domain, entry) else Reason.TOO_LITTLE


def _taken(bundles: Bundles, podgroup: int, wanted: int) -> _Taken:
    mine = np.flatnonzero(bundles.podgroup == podgroup)
    safe, whole = (
        np.concatenate([np.zeros(0, np.int64), *(bundles.entries_of(b) for b in mine[bundles.safe[mine] == kind])])
        for kind in (True, False)
    )
    if len(safe) >= wanted or len(whole) == 0:
        return _Taken(safe[:wanted], True)
    return _Taken(np.concatenate([safe, whole]), False)


def _elsewhere(search: Search, podgroup: int, domain: int) -> Rows:
    """Members outside the domain that go along with a podgroup that breaks."""
    first, stop = search.nodes_of(domain)
    rows = search.snapshot.tasks_of(podgroup)
    node = search.snapshot.tasks.node[rows]
    return rows[search.candidate[rows] & ~((node >= first) & (node < stop))]


def _enough(search: Search, domain: int, entry: Rows) -> bool:
    """Whether slots suffice for the minimum once these entries are gone."""
    free = FreeRoom(search, domain)
    free.leave(np.sort(entry))
    return free.enough
