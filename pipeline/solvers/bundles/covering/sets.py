"""Sets of victims of one domain, and such a set as bundles."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Ids, Longs, Rows
from pipeline.kernels import linked, writing
from pipeline.solvers.bundles.bundling.cost import cost_of
from pipeline.solvers.bundles.bundling.records import Bundles, Outcome, Terms
from pipeline.solvers.bundles.bundling.splitting import gain_of
from pipeline.solvers.bundles.covering.cover import units_of


class Sets(NamedTuple):
    """The cheapest sets of victims of one domain, cheapest first.

    Attributes
    ----------
    owner: int64[P]
        Podgroups with candidates here.
    start: int64[P + 1]
        Where the entries of each begin.
    entry: int64[C]
    gone: bool[K, C]
        Which entries go.
    breaks: bool[K, P]
        Which podgroups break; all their entries go.
    """

    owner: Rows
    start: Longs
    entry: Rows
    gone: Bools
    breaks: Bools


@linked
def bundles_of_set(sets: Sets, at: int, terms: Terms) -> Bundles:
    """The victims of one set as bundles: what breaks, and what goes as surplus."""
    groups, most = terms.groups, len(sets.owner)
    podgroup, stop, safe = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.bool_)
    elsewhere, efficiency, cost = np.zeros(most, np.int64), np.full(most, np.inf), np.zeros(most)
    entry, many, end = np.empty(len(sets.entry), np.int64), 0, 0
    freed = np.empty(len(terms.worth.needed), np.int64)
    for g in range(most):
        begin, owner = end, sets.owner[g]
        for i in range(sets.start[g], sets.start[g + 1]):
            if sets.gone[at, i]:
                entry[end] = sets.entry[i]
                end += 1
        if begin == end:
            continue
        podgroup[many], safe[many], stop[many] = owner, not sets.breaks[at, g], end
        if sets.breaks[at, g]:
            cost[many] = groups.cost[owner]
            gained = gain_of(entry[begin:end], terms.entries.shape, terms.worth, freed)
            efficiency[many] = gained / cost[many] if cost[many] > 0 else 0.0
            if terms.rules.cluster_wide:
                elsewhere[many] = groups.running[owner] - (end - begin)
        many += 1
    return Bundles(
        podgroup[:many], safe[:many], stop[:many], entry[:end], elsewhere[:many], efficiency[:many], cost[:many]
    )


@writing("seats")
def outcome_of_set(sets: Sets, at: int, terms: Terms, seats: Ids) -> Outcome:
    """The same as an outcome."""
    bundles = bundles_of_set(sets, at, terms)
    units = units_of(bundles, terms.entries, terms.groups, terms.rules, seats)
    returned = np.zeros(len(units.stop), np.bool_)
    return Outcome(True, bundles, units, returned, cost_of(bundles, units, returned, terms, seats))
