"""Every set of a few units, where the units in their order are not lawful together.

The rule of fair shares may refuse units that it allows beside others: a victim of the preemptor's own department lets
its queue take more from another department. So a unit that is refused where it stands can be part of a lawful set.
"""

from itertools import combinations

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Rows, is_among
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.settling import Settled
from pipeline.solvers.scenarios.trying import WorkingScenario
from pipeline.solvers.scenarios.units import VictimUnits

#: Sets of at most this many units are looked at.
_UNITS = 10


def first_of_all(scenario: Scenario) -> WorkingScenario | None:
    """The smallest set that makes room, is needed for it as a whole, and is lawful; the first of those in order.

    None if there is none, or if there are more than a few units. No victim moves: it is lawful beside all others.
    """
    units, law, ground = scenario.units, scenario.law, scenario.ground
    if len(units) > _UNITS or not scenario.fits_without(len(units)):
        return None
    roomy = list[Bools]()
    for chosen in _sets(len(units)):
        rows = units.rows_of(chosen)
        if not _whole(units, chosen) or any((some <= chosen).all() for some in roomy):
            continue
        if law.takes(rows) and (places := ground.place(rows)) is not None:
            if law.allows(rows):
                return WorkingScenario(places, Settled(NO_ROWS, NO_ROWS, np.sort(rows)))
            roomy.append(chosen)
    return None


def _sets(many: int) -> list[Bools]:
    """bool[U] each: all sets of units but the empty one, the smallest first."""
    at = np.arange(many)
    return [np.isin(at, some) for size in range(1, many + 1) for some in combinations(range(many), size)]


def _whole(units: VictimUnits, chosen: Bools) -> bool:
    """Whether no podgroup breaks and keeps surplus."""
    breaks: Rows = units.podgroup[chosen & units.whole]
    return not (is_among(units.podgroup, breaks) & ~chosen).any()
