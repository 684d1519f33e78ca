"""Scenarios one after the other, each judged by what becomes of its victims; for moves, where counts do not decide."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeGuard

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Ids, Longs, Rows, distinct, is_among, without
from pipeline.cluster.orders import unique_counts
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.price import in_units, lost_work, needed_by
from pipeline.kernels import kernel
from pipeline.placement.need import Need
from pipeline.plugins.host import Host
from pipeline.solvers.scenarios.accumulating import Scenario
from pipeline.solvers.scenarios.budget import Budget, work_of
from pipeline.solvers.scenarios.moves.moving import Stays
from pipeline.solvers.scenarios.moves.room_bound import RoomBound
from pipeline.solvers.scenarios.moves.victim_places import VictimPlaces, all_lost, placed_again
from pipeline.solvers.scenarios.returning import joined_by_gang, needed
from pipeline.solvers.scenarios.slices.node_slice import NodeSlice
from pipeline.solvers.scenarios.units import VictimUnits

#: This many scenarios grow by one unit each; later ones grow by this factor.
_ONE_BY_ONE = 16
_GROWTH = 1.25
#: At most this many tasks of the newest unit are tried as the one that must go.
_NEWEST = 8
#: At most this many tasks that move are tried as ones that stay; of more first this many podgroups.
_MOVES = 16


@dataclass(frozen=True)
class WorkingScenario:
    """A scenario that works.

    Attributes
    ----------
    ground
        The slice of nodes that it was tried on.
    places: int64[K] each
        The nodes and cards of the preemptor's tasks.
    victims
        What becomes of them.
    """

    ground: NodeSlice
    places: tuple[Rows, Rows]
    victims: VictimPlaces


def first_lawful(scenario: Scenario, budget: Budget, bound: RoomBound) -> tuple[int, WorkingScenario] | None:
    """The first scenario, by its number of leading units, whose outcome is lawful, and the turn of its newest unit.

    For each, some sets of victims are tried (see ``_sets``); if none of any is lawful, all victims of each once more in
    case they can change places. Each set is paid from the budget.
    """
    known = set[bytes]()
    several = [units for units in _scenarios(scenario) if bound.may_suffice(scenario.ground, units)]
    for units in several:
        for victims in _sets(scenario, units):
            if victims.tobytes() in known:
                continue
            if not budget.spend(work_of(len(victims))):
                return None
            known.add(victims.tobytes())
            found = _fewest_moves(scenario, victims)
            if found is not None and _all_needed(scenario, units, found.victims):
                return int(units.turn.max(initial=NONE)), found
    for units in several if scenario.law.moves_are_free else ():
        if scenario.ground.fits(units.rows) and budget.spend(work_of(len(units.rows))):
            found = _fewest_moves(scenario, np.sort(units.rows), (Stays.BY_CHANCE, Stays.IN_TURN))
            if found is not None and _all_needed(scenario, units, found.victims):
                return int(units.turn.max(initial=NONE)), found
    return None


def _all_needed(scenario: Scenario, units: VictimUnits, victims: VictimPlaces) -> bool:
    """Whether no victim could stay beside the others, where none of them moves.

    The plugins may accept victims together and not those alone that make room: that is no reason for one more.
    """
    if len(victims.moved) or not len(victims.lost):
        return True
    lost = joined_by_gang(units.without(~is_among(units.rows, victims.lost)))
    return len(needed(scenario, lost, np.arange(len(lost))[None])[0]) == len(victims.lost)


def _fewest_moves(scenario: Scenario, victims: Rows, ways: Sequence[Stays] = (Stays.FIRST,)) -> WorkingScenario | None:
    """The outcome with the fewest moves that were found, and no other victim lost; or None if it is not lawful.

    The first of the ways to choose who stays decides whether there is one; the others may need fewer moves.
    """
    found = outcome(scenario, victims, emptiest=(False, True), stays=ways[0])
    if found is None:
        return None
    best = ways[0]
    for way in ways[1:]:
        other = outcome(scenario, victims, emptiest=(False, True), stays=way)
        if _moves_no_more(other, found):
            found, best = other, way
    if len(found.victims.moved) > _MOVES:
        found = _less(scenario, found, _by_podgroup(scenario.ground.snapshot, found.victims.moved), best)
    return _less(scenario, found, list(found.victims.moved[:, None]), best)


def _less(scenario: Scenario, found: WorkingScenario, groups: list[Rows], stays: Stays) -> WorkingScenario:
    """The outcome once the first groups of tasks that move were tried, one by one, as tasks that stay."""
    for some in groups[:_MOVES]:
        other = outcome(scenario, without(found.victims.evicted, some), emptiest=(False, True), stays=stays)
        if _moves_no_more(other, found):
            found = other
    return found


def _moves_no_more(one: WorkingScenario | None, than: WorkingScenario) -> TypeGuard[WorkingScenario]:
    """Whether it moves no more tasks than the other, and loses the same."""
    if one is None or not np.array_equal(one.victims.lost, than.victims.lost):
        return False
    return len(one.victims.moved) <= len(than.victims.moved)


def _by_podgroup(snapshot: Snapshot, moved: Rows) -> list[Rows]:
    """The tasks of each podgroup; those that move most tasks first."""
    owner = snapshot.tasks.podgroup[moved]
    podgroups, many = unique_counts(owner)
    return [moved[owner == one] for one in podgroups[np.argsort(-many, kind="stable")]]


def outcome(
    scenario: Scenario, victims: Rows, *, emptiest: Sequence[bool] = (False,), stays: Stays = Stays.FIRST
) -> WorkingScenario | None:
    """The outcome of taking the victims, or None if it is not lawful.

    ``emptiest``: the ways to place the preemptor that are tried in turn, see ``NodeSlice.place``. ``stays``: see
    ``placed_again``.
    """
    law, ground = scenario.law, scenario.ground
    need, gone, some_fit = ground.need, all_lost(victims), _some_fit(ground.snapshot, ground.need, victims)
    if not some_fit and not _is_lawful(scenario, gone):  # the law is asked sooner than places are found
        return None
    for way in emptiest:
        nodes, found = ground.place(victims, emptiest=way), gone
        if nodes is None:
            continue
        places = placed_on(law.host, need, nodes, victims)
        if some_fit:
            found = placed_again(law.host, need, places, victims, biggest_first=law.moves_all, stays=stays)
            if not law.moves_all and not law.takes(found.lost):  # they go because of a limit, not for their room
                found = gone
        if not some_fit or _is_lawful(scenario, found):
            return WorkingScenario(ground, places, found)
    return None


def placed_on(host: Host, need: Need, nodes: Rows, leaving: Rows) -> tuple[Rows, Rows]:
    """int64[K] each: the ``nodes`` of the need's tasks, and their cards there once ``leaving`` have gone."""
    return nodes, host.cards_for(need.tasks[: need.minimum], nodes, leaving)


def _is_lawful(scenario: Scenario, found: VictimPlaces) -> bool:
    """Whether this may become of the victims."""
    law, lost = scenario.law, found.lost
    if law.moves_all:
        lawful = len(lost) == 0 and law.takes(NO_ROWS) and _worth(scenario, found)
    else:
        lawful = law.takes(lost) and law.allows(lost if law.moves_are_free else found.evicted)
    return lawful and law.host.keeps_pace(found.evicted)


def _some_fit(snapshot: Snapshot, need: Need, victims: Rows) -> bool:
    """Whether what all nodes together have left beside the preemptor is enough for at least one of the victims."""
    shape, request = snapshot.tasks.shape, snapshot.shapes.request
    return bool(_one_fits(victims, shape, request, snapshot.room.free - need.total))


@kernel
def _one_fits(victims: Rows, shape: Ids, request: Longs, room: Longs) -> bool:
    """Whether one of the victims fits where all have gone; ``room`` int64[R] is what there is with them."""
    left = room.copy()
    for row in victims:
        left += request[shape[row]]
    for row in victims:
        fits = True
        for r in range(len(left)):
            asks = request[shape[row], r]
            fits &= asks <= left[r] or asks == 0
        if fits:
            return True
    return False


def _scenarios(scenario: Scenario) -> Iterator[VictimUnits]:
    """Leading units, increasingly many, from the first number that could be enough."""
    count, step = scenario.ground.reached(scenario.units), 0
    last = len(scenario.units)
    while count != NONE and count <= last:
        yield scenario.units.first(count)
        step += 1
        following = count + 1 if step < _ONE_BY_ONE else max(count + 1, int(count * _GROWTH))
        count = last if count < last < following else following


def _sets(scenario: Scenario, units: VictimUnits) -> Iterator[Rows]:
    """Victims that are needed beside each task of the newest unit, then all of them.

    If all must be placed again, no podgroup breaks, so single tasks of it may go, and the fewest are tried first.
    """
    if not scenario.ground.fits(units.rows):
        return
    if len(units) == 0:  # there is room already
        yield NO_ROWS
        return
    moves_all = scenario.law.moves_all
    groups = units.split() if moves_all else joined_by_gang(units)
    newest = np.flatnonzero(groups.turn == units.turn[-1])[:_NEWEST].tolist()
    orders = [_keeping(kept, scenario.ground.snapshot.tasks.node[groups.rows[groups.start[:-1]]]) for kept in newest]
    found = chain.from_iterable(needed(scenario, groups, some) for some in orders)
    yield from sorted(found, key=len) if moves_all else found
    yield np.sort(units.rows)


def _keeping(kept: int, node: Ids) -> Longs:
    """int64[4, U]: orders of return in which one unit is the last: the latest or the earliest of the others first.

    Then the same with those on its node (``node`` int32[U]) after all others, since room on one node is of most use.
    """
    others = np.delete(np.arange(len(node)), kept)
    ways = [others[::-1], others]
    ways += [way[np.argsort(node[way] == node[kept], kind="stable")] for way in ways]
    return np.array([np.append(way, kept) for way in ways])


def _worth(scenario: Scenario, found: VictimPlaces) -> bool:
    """Whether the moves are worth their cost: a move restarts a task; its work since the last checkpoint is lost."""
    law = scenario.law
    snapshot, policy = law.host.context.snapshot, law.host.context.policy
    owner = snapshot.tasks.podgroup[found.moved]
    if 0 <= policy.consolidation_max_victims < len(distinct(owner)):
        return False
    if policy.consolidation_cost_limit <= 0:
        return True
    held = in_units(snapshot.request_of(found.moved), needed_by(law.preemptor.request))
    lost = float((held * lost_work(snapshot, law.host.context.now)[owner]).sum())
    return lost <= policy.consolidation_cost_limit
