"""Every set of a few victims, where the units in their order are not lawful together.

The rule of fair shares may refuse units that it allows beside others: a victim of the preemptor's own department lets
its queue take more from another department. So a unit that is refused where it stands can be part of a lawful set, and
of a podgroup with surplus another task may have to go than the first in its order.
"""

from itertools import chain, combinations, product

import numpy as np

from pipeline.cluster.arrays import distinct, is_among
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.moves.trying import WorkingScenario, placed_on
from pipeline.solvers.scenarios.moves.victim_places import all_lost
from pipeline.solvers.scenarios.units import VictimUnits

#: All sets are looked at of at most this many tasks with at most this many choices: whether one podgroup goes, or one
#: task of a podgroup with surplus.
_TASKS, _CHOICES = 64, 10


def first_lawful_set(scenario: Scenario) -> WorkingScenario | None:
    """The smallest set that makes room, is needed for it as a whole, and is lawful; the first of those in order.

    None if there is none, or if there are more than a few choices. No victim moves: it is lawful beside all others.
    """
    units, law, ground = scenario.units, scenario.law, scenario.ground
    elastic = is_among(units.podgroup, units.podgroup[~units.whole])
    choices = np.where(elastic, np.diff(units.start), 1).sum()
    if len(units.rows) > _TASKS or choices > _CHOICES or not scenario.fits_without(len(units)):
        return None
    roomy = list[set[int]]()
    for some in _sets(ground.snapshot, units):
        rows = np.array(some, np.int64)
        if any(one.issubset(some) for one in roomy) or not law.takes(rows) or not ground.fits(rows):
            continue
        nodes = ground.place(rows)
        if nodes is not None and law.allows(rows):
            return WorkingScenario(ground, placed_on(law.host, ground.need, nodes, rows), all_lost(np.sort(rows)))
        if nodes is not None:
            roomy.append(set(some))
    return None


def _sets(snapshot: Snapshot, units: VictimUnits) -> list[tuple[int, ...]]:
    """Sets of candidates after which each podgroup has its minimum, or nothing left; the smallest first."""
    each = [_parts(snapshot, group, units.only(units.podgroup == group)) for group in distinct(units.podgroup).tolist()]
    return sorted((tuple(chain.from_iterable(some)) for some in product(*each)), key=lambda some: (len(some), some))


def _parts(snapshot: Snapshot, group: int, units: VictimUnits) -> list[tuple[int, ...]]:
    """The sets of tasks of one podgroup that may go."""
    found, rows = list[tuple[int, ...]]([()]), units.rows.tolist()
    fewest = 1 if len(units) > 1 or not units.whole[0] else len(rows)
    for some in chain.from_iterable(combinations(rows, many) for many in range(fewest, len(rows) + 1)):
        whole = len(some) == snapshot.counts.running[group]
        if whole or has_minimum(WhatIf.of(snapshot).evicting(np.array(some, np.int64)), group):
            found.append(some)
    return found
