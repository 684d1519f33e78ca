"""Sets of victims of one domain, and such a set as bundles."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Ids, Longs, Rows
from pipeline.kernels import linked, writing
from pipeline.solvers.bundles.bundling.cost import cost_of
from pipeline.solvers.bundles.bundling.records import Bundles, Outcome, Terms, blank, cut
from pipeline.solvers.bundles.bundling.splitting import set_figures
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
    made, many, end = blank(len(sets.owner), len(sets.entry)), 0, 0
    freed = np.empty(len(terms.worth.needed), np.int64)
    for g in range(len(sets.owner)):
        begin, owner = end, sets.owner[g]
        for i in range(sets.start[g], sets.start[g + 1]):
            if sets.gone[at, i]:
                made.entry[end] = sets.entry[i]
                end += 1
        if begin == end:
            continue
        made.podgroup[many], made.safe[many], made.stop[many] = owner, not sets.breaks[at, g], end
        if sets.breaks[at, g]:
            set_figures(made, many, made.entry[begin:end], terms.groups.running[owner] - (end - begin), terms, freed)
        many += 1
    return cut(made, many, end)


@writing("seats")
def outcome_of_set(sets: Sets, at: int, terms: Terms, seats: Ids) -> Outcome:
    """The same as an outcome."""
    return outcome_of(bundles_of_set(sets, at, terms), terms, seats)


@writing("seats")
def outcome_of(bundles: Bundles, terms: Terms, seats: Ids) -> Outcome:
    """The outcome in which all of some bundles go."""
    units = units_of(bundles, terms.entries, terms.groups, terms.rules, seats)
    returned = np.zeros(len(units.stop), np.bool_)
    return Outcome(True, bundles, units, returned, cost_of(bundles, units, returned, terms, seats))
