"""Scenarios one after the other, each judged by what becomes of its victims: for moves, where no count tells enough."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Rows
from pipeline.decision.price import in_units, lost_work, needed_by
from pipeline.plugins.extension_points import NOBODY
from pipeline.solvers.scenarios.accumulating import Scenario, needed, together
from pipeline.solvers.scenarios.settling import Settled, settled
from pipeline.solvers.scenarios.units import Units

#: So many scenarios are tried one unit apart; then each is so much longer than the one before.
_ONE_BY_ONE = 16
_GROWTH = 1.25
#: So many tasks of the newest unit are tried as the one that must go.
_NEWEST = 8


@dataclass(frozen=True)
class Outcome:
    """A scenario that works: where the preemptor goes (int64[K]), and what becomes of the victims."""

    places: Rows
    victims: Settled


def tried(scenario: Scenario) -> tuple[int, Outcome] | None:
    """The first scenario, by its number of leading units, whose outcome is lawful, and the turn of its newest unit.

    Of each, three sets of victims are tried: those that are needed beside the newest, the most important ones returned
    first; the same with the least important ones first; and all of them, so that victims can change places.
    """
    known = set[bytes]()
    for units in _scenarios(scenario):
        for victims in _sets(scenario, units):
            if victims.tobytes() in known:
                continue
            known.add(victims.tobytes())
            for emptiest in (False, True):
                found = outcome(scenario, victims, emptiest=emptiest)
                if found is not None:
                    return int(units.turn.max(initial=NONE)), found
    return None


def outcome(scenario: Scenario, victims: Rows, *, emptiest: bool = False) -> Outcome | None:
    """What comes of taking the victims, or None if that is not lawful. ``emptiest``: see ``Ground.place``."""
    law, ground = scenario.law, scenario.ground
    places = ground.place(victims, emptiest=emptiest)
    if places is None:
        return None
    found = settled(law.host, ground.need, places, victims, biggest_first=law.settles)
    if not law.settles and not law.takes(found.lost):  # it is not for their room that they go, but for a limit
        found = Settled(NOBODY, NOBODY, victims)
    lost = found.lost if law.moves_are_free else found.evicted
    if law.settles:
        lawful = len(found.lost) == 0 and law.takes(NOBODY) and _worth(scenario, found)
    else:
        lawful = law.takes(found.lost) and law.allows(lost)
    return Outcome(places, found) if lawful else None


def _scenarios(scenario: Scenario) -> Iterator[Units]:
    """Leading units, more and more of them, from the first that could be enough."""
    count, step = scenario.ground.reached(scenario.units), 0
    last = len(scenario.units)
    while count != NONE and count <= last:
        yield scenario.leading(count)
        step += 1
        following = count + 1 if step < _ONE_BY_ONE else max(count + 1, int(count * _GROWTH))
        count = last if count < last < following else following


def _sets(scenario: Scenario, units: Units) -> Iterator[Rows]:
    """Victims that are needed beside each of the newest, then all of them.

    Where all must be placed again no podgroup breaks, and single tasks of it may go.
    """
    if len(units) == 0 or not scenario.ground.fits(units.rows):
        return
    groups = units.split() if scenario.law.settles else together(units)
    for kept in np.flatnonzero(groups.turn == units.turn[-1])[:_NEWEST].tolist():
        others = np.delete(np.arange(len(groups)), kept)
        for turn in (others[::-1], others):
            yield needed(scenario, groups, np.append(turn, kept))
    yield np.sort(units.rows)


def _worth(scenario: Scenario, found: Settled) -> bool:
    """Whether moving is worth it: a move restarts a task, and what it has done since its checkpoint is lost."""
    law = scenario.law
    snapshot, policy = law.host.context.snapshot, law.host.context.policy
    owner = snapshot.tasks.podgroup[found.moved]
    if 0 <= policy.consolidation_max_victims < len(np.unique(owner)):
        return False
    if policy.consolidation_cost_limit <= 0:
        return True
    held = in_units(snapshot.shapes.request[snapshot.tasks.shape[found.moved]], needed_by(law.preemptor.request))
    lost = float((held * lost_work(snapshot, law.host.context.now)[owner]).sum())
    return lost <= policy.consolidation_cost_limit
