"""The smallest scenario: leading lawful units until the preemptor fits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Rows, is_among
from pipeline.records import replace
from pipeline.solvers.scenarios.budget import Budget, work_of
from pipeline.solvers.scenarios.law import Law
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits

#: Letting units return in several orders is as much work as this many scenarios that are only counted.
_SPARING = 8


@dataclass(frozen=True)
class Scenario:
    """Units that go together, in one slice of nodes."""

    ground: NodeSlice
    law: Law
    units: VictimUnits

    def fits_without(self, count: int) -> bool:
        """Whether the preemptor fits once the leading units have gone, and its queue may take it."""
        rows = self.tasks(count)
        return self.law.takes(rows) and self.ground.fits(rows)

    def tasks(self, count: int) -> Rows:
        """int64[V]: the tasks of the leading units."""
        return self.units.rows[: self.units.start[count]]

    def up_to(self, turn: int) -> "Scenario":
        """With the units whose turn comes before this one."""
        units = self.units.only(self.units.turn < turn)
        return self if units is self.units else replace(self, units=units)


@dataclass(frozen=True)
class Reached:
    """A scenario, how many of its leading units are enough, and whether the law allows these as they are."""

    scenario: Scenario
    count: int
    lawful: bool = True

    @property
    def turn(self) -> int:
        """The turn of the last unit that goes; NONE if none does."""
        return int(self.scenario.units.turn[: self.count].max(initial=NONE))


def accumulated(
    scenario: Scenario,
    before: int,
    budget: Budget,
    spares: Callable[[Scenario, int], bool] | None = None,
    *,
    strict: bool = False,
) -> Reached | None:
    """The fewest leading units, lawful together, after which the preemptor fits; None if there are none.

    A unit that is not lawful beside those before it is skipped. ``before``: only units with an earlier turn count.
    Each refusal is paid from the budget. ``spares``: whether units that are not lawful together are so once those that
    are not needed have returned; then they are enough as well. ``strict``: those that are lawful together must be so
    once others have returned, too, or the last of them is skipped.
    """
    scenario = scenario.up_to(before)
    while budget.left >= 0:
        count = scenario.ground.reached(scenario.units)
        if count == NONE:
            return None
        many = most_lawful(scenario, count)
        if many == count:
            exact = scenario.ground.plain and scenario.law.takes(scenario.tasks(count))
            least = count if exact else _least(scenario.fits_without, count, len(scenario.units))
            if least == NONE:
                return None
            many = count if exact else most_lawful(scenario, least)
            if many == least:
                if not strict or spares is None or spares(scenario, least):
                    return Reached(scenario, least)
                many -= 1
        elif many <= 0 and scenario.law.refuses_all:  # else some are lawful
            return None
        elif spares is not None and scenario.fits_without(count) and _spares(spares, scenario, count, budget):
            return Reached(scenario, count, lawful=False)
        budget.spend()
        scenario = replace(scenario, units=_without(scenario, many))
    return None


def _spares(spares: Callable[[Scenario, int], bool], scenario: Scenario, count: int, budget: Budget) -> bool:
    """Whether leading units are lawful once others have returned; paid from the budget, and false if it is spent."""
    return budget.spend(_SPARING * work_of(len(scenario.tasks(count)))) and spares(scenario, count)


def most_lawful(scenario: Scenario, count: int) -> int:
    """How many of the first ``count`` units are lawful together, though one more is not."""

    def wrong(many: int) -> bool:
        return not scenario.law.allows(scenario.tasks(many))

    if not wrong(count):
        return count
    return _least(wrong, 1, count) - 1


def _least(holds: Callable[[int], bool], first: int, last: int) -> int:
    """The least number in ``first..last`` from which on ``holds``; NONE if it does not hold at ``last``.

    Steps double from ``first`` on, since the least is mostly close to it.
    """
    fails, step = first - 1, 1
    while not holds(at := min(fails + step, last)):
        if at == last:
            return NONE
        fails, step = at, step * 2
    while at - fails > 1:
        half = (fails + at) // 2
        fails, at = (fails, half) if holds(half) else (half, at)
    return at


def _without(scenario: Scenario, refused: int) -> VictimUnits:
    """The units without the refused one, and without later ones that take at least as much from the same queue.

    A unit that is refused by itself (a protected podgroup) says nothing about others. What is left of a podgroup goes
    only with all its surplus.
    """
    units, snapshot = scenario.units, scenario.ground.snapshot
    kept = np.arange(len(units)) != refused
    alone = units.only(~kept)
    if scenario.law.allows(alone.rows):
        held = np.add.reduceat(snapshot.request_of(units.rows), units.start[:-1])
        queue = snapshot.podgroups.queue[units.podgroup]
        behind = np.arange(len(units)) > refused
        kept &= ~(behind & (queue == queue[refused]) & (held >= held[refused]).all(axis=1))
    return units.only(kept & ~(units.whole & is_among(units.podgroup, units.podgroup[~kept])))
