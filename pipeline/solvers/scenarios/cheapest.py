"""The choice among several orders of return: the one after which least breaks."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Floats, Ids, Longs, Rows, distinct, is_among
from pipeline.cluster.rules.breaking import breaking
from pipeline.cluster.rules.priorities import priority_ranks
from pipeline.decision.price import lost_work, price_of
from pipeline.kernels import kernel, linked
from pipeline.policy import Purpose
from pipeline.records import replace
from pipeline.solvers.scenarios.accumulating import Reached, Scenario, accumulated
from pipeline.solvers.scenarios.budget import Budget
from pipeline.solvers.scenarios.proof import breaks_least
from pipeline.solvers.scenarios.returning import joined_by_gang, needed, share_of, sparing
from pipeline.solvers.scenarios.units import VictimUnits

#: If more podgroups than ``_FEW`` would break, scenarios longer by each of ``_LONGER`` units are looked at as well.
_FEW, _LONGER = 2, (1, 2, 4, 8, 16, 32, 64)
#: In reclaim a podgroup may go in place of ``_RATE`` less important ones, if at most ``_MORE`` times the work is lost.
_RATE, _MORE = 4, 1.25
#: Of at most this many podgroups each is tried as the one that goes in place of others of its priority.
_EXCHANGED = 32
#: The law may refuse this many units where the biggest are to go.
_REFUSALS = 64


class _Loss(NamedTuple):
    """What victims lose: podgroups that break, by priority, the highest first; and how much all victims hold."""

    by_priority: tuple[int, ...]
    held: float

    @property
    def broken(self) -> int:
        """How many podgroups break."""
        return sum(self.by_priority)


class _Remainder(NamedTuple):
    """The victims (int64[V]) that are left once units have returned in an order, and what they lose."""

    loss: _Loss
    victims: Rows


def cheapest(reached: Reached) -> Rows:
    """int64[V]: of several orders of return, the victims of the one that breaks least, priority by priority.

    Where some podgroups would break, a few units more may let most of them return, so longer scenarios are looked at
    too, in preempt without podgroups more important than those of the shortest. In reclaim priority does not say which
    may be taken: there one podgroup may go in place of many less important ones, for a little more work. Where none of
    that can be, because nothing breaks less, no more is looked at.
    """
    scenario, count = reached.scenario, reached.count
    if count == 0:
        return NO_ROWS
    ways = _ways(scenario, count)
    best = _best(scenario, ways)
    if not reached.lawful:  # longer ones are not lawful either
        return best.victims
    preempts = scenario.law.preemptor.purpose is Purpose.PREEMPT
    provable = preempts or best.loss.broken < _RATE
    if best.loss.broken > _FEW and not (provable and breaks_least(scenario, best.loss.by_priority)):
        scenario = _without_higher_priority(scenario, count)
        ways += _with_losses(scenario, _of_longer(scenario, count))
        best = _best(scenario, ways)
        if best.loss.broken > _FEW:
            ways += _exchanged(scenario, count, best)
            best = _best(scenario, ways)
    if preempts or best.loss.broken < _RATE:
        return best.victims
    ways += _biggest(reached.scenario)
    fewest = _best(scenario, ways, key=lambda way: (way.loss.broken, way.loss))
    if _RATE * fewest.loss.broken > best.loss.broken:
        return best.victims
    dear = _work(scenario, fewest.victims) > _MORE * _work(scenario, best.victims)
    return best.victims if dear else fewest.victims


def _best(
    scenario: Scenario, ways: Sequence[_Remainder], key: Callable[[_Remainder], Any] = attrgetter("loss")
) -> _Remainder:
    """The first lawful way by a key, or just the first: what is left of lawful units can be unlawful."""
    ways = sorted(ways, key=key)
    if len(ways) == 1:
        return ways[0]
    return next((way for way in ways if scenario.law.allows(way.victims)), ways[0])


def _work(scenario: Scenario, victims: Rows) -> float:
    """The lost work of victims (int64[V]), of all levels; see ``Price``."""
    state, ground = scenario.law.host.context, scenario.ground
    lost = lost_work(state.snapshot, state.now)
    return price_of(state.snapshot, victims, ground.need.total, lost, None, ground.domain).lost_work


def _of_longer(scenario: Scenario, count: int) -> list[Rows]:
    """The same of scenarios that are longer by a few units, as far as these are lawful; int64[V] each."""
    counts = distinct(np.minimum(count + np.array(_LONGER), len(scenario.units)))
    while len(counts) and not scenario.law.allows(scenario.tasks(counts[-1])):
        counts = counts[:-1]
    return _left_by(scenario, counts) if len(counts) else []


def _exchanged(scenario: Scenario, count: int, best: _Remainder) -> list[_Remainder]:
    """Ways that lose less than the best: a podgroup that stays is the last of its priority to return.

    Where the smallest return first, one that goes may save several that do not: it takes their place. Podgroups are
    tried in turn if others of their priority go.
    """
    snapshot = scenario.ground.snapshot
    groups = joined_by_gang(scenario.units.first(min(max(count, _EXCHANGED), len(scenario.units))))
    if len(groups) > _EXCHANGED:
        return []
    priority = snapshot.podgroups.priority[groups.podgroup]
    goes = is_among(groups.podgroup, snapshot.tasks.podgroup[best.victims])
    stays = (~goes & is_among(priority, priority[goes])).nonzero()[0]
    if len(stays) == 0:
        return []
    last = np.where(np.arange(len(groups)) == stays[:, None], np.inf, _held(scenario, groups))
    ways = _with_losses(scenario, needed(scenario, groups, _in_turn(scenario, groups, last)))
    return [way for way in ways if way.loss < best.loss]


def spares_lawfully(scenario: Scenario, count: int) -> bool:
    """Whether the leading units may be taken once those that are not needed have returned in some order."""
    return any(scenario.law.allows(rows) for _, rows in _ways(scenario, count))


def _biggest(scenario: Scenario) -> list[_Remainder]:
    """The same where podgroups go that hold about as much as is asked for: the biggest of them first."""
    units, snapshot = joined_by_gang(scenario.units), scenario.ground.snapshot
    held, asked = _held(scenario, units), scenario.ground.need.total / np.maximum(snapshot.capacity, 1)
    over = held > asked.max(initial=0.0)
    units = units.arranged(np.lexsort((units.turn, np.where(over, held, -held), over)))
    found = accumulated(replace(scenario, units=units), len(snapshot.tasks), Budget(_REFUSALS))
    return _ways(found.scenario, found.count) if found is not None and found.count else []


def _without_higher_priority(scenario: Scenario, count: int) -> Scenario:
    """In preempt the scenario less the units more important than its leading ones."""
    if scenario.law.preemptor.purpose is not Purpose.PREEMPT:
        return scenario
    units, priority = scenario.units, scenario.ground.snapshot.podgroups.priority[scenario.units.podgroup]
    return replace(scenario, units=units.only(priority <= priority[:count].max()))


def _ways(scenario: Scenario, count: int) -> list[_Remainder]:
    """The victims that several orders of return of the leading units leave, and what each loses."""
    return _with_losses(scenario, _left_by(scenario, np.array([count])))


def _left_by(scenario: Scenario, counts: Longs) -> list[Rows]:
    """The victims that several orders of return leave, int64[V] each, for each of some ascending numbers of units."""
    units = scenario.units.first(int(counts[-1]))
    if len(counts) > 1 and not units.whole.all():  # what goes together is not the same in all of them
        return [rows for at in range(len(counts)) for rows in _left_by(scenario, counts[at : at + 1])]
    groups = joined_by_gang(units)
    orders = _orders(scenario, groups)
    many = np.minimum(counts, len(groups)).repeat(len(orders))
    found = needed(scenario, groups, np.concatenate([orders] * len(counts)), many)
    if 1 < len(groups) < len(units):
        found.append(sparing(scenario, units))
    return found


def _orders(scenario: Scenario, groups: VictimUnits) -> Longs:
    """int64[O, U]: orders of return, each once.

    The highest priority returns first; at equal priority the latest in the queue of victims, or the units that hold
    least, so that few break, or most, so that small ones break; in reclaim also those that hold least of any priority.
    Surplus of podgroups that go whole returns with the rest of them, or stays away while the rest returns.
    """
    priority, by_size = _priority(scenario, groups), scenario.law.preemptor.purpose is not Purpose.PREEMPT
    return np.asarray(_different_orders(_held(scenario, groups), groups.whole, priority, by_size))


def _priority(scenario: Scenario, groups: VictimUnits) -> Ids:
    """int32[U]: the priority of each unit."""
    return scenario.ground.snapshot.podgroups.priority[groups.podgroup]


@kernel
def _different_orders(held: Floats, whole: Bools, priority: Ids, by_size: bool) -> Longs:
    """The same; ``by_size``: also those that hold least of any priority."""
    late, orders, found = np.arange(len(held))[::-1], np.empty((3 + by_size, len(held)), np.int64), 0
    orders[0] = late
    orders[1], orders[2] = _by_priority(held, whole, priority), _by_priority(-held, whole, priority)
    if by_size:
        orders[3] = _then(_then(_then(late, ~priority), held), ~whole)
    for one in range(len(orders)):
        at = 0
        while at < found and (orders[at] != orders[one]).any():
            at += 1
        if at == found:
            orders[found] = orders[one]
            found += 1
    return orders[:found]


@linked
def _by_priority(first: Floats, whole: Bools, priority: Ids) -> Rows:
    """One order of ``_in_turn``."""
    return _then(_then(_then(np.arange(len(first))[::-1], first), ~whole), ~priority)


@linked
def _then(order: Rows, key: Any) -> Rows:
    """Rows that are in an order, put in that of a more significant key."""
    return order[np.argsort(key[order], kind="mergesort")]


def _held(scenario: Scenario, groups: VictimUnits) -> Floats:
    """float64[U]: the part of the cluster that each unit holds, see ``share_of``."""
    snapshot = scenario.ground.snapshot
    return np.asarray(np.add.reduceat(share_of(snapshot)[snapshot.tasks.shape[groups.rows]], groups.start[:-1]))


def _in_turn(scenario: Scenario, groups: VictimUnits, first: Floats) -> Longs:
    """int64[O, U]: units by priority, the highest first; in it by ``first`` (float64[O, U]), the least first.

    Surplus returns after podgroups of its priority that would break; of units alike the latest in the queue is first.
    """
    return np.asarray(_all_by_priority(first, groups.whole, _priority(scenario, groups)))


@kernel
def _all_by_priority(first: Floats, whole: Bools, priority: Ids) -> Longs:
    """See ``_in_turn``."""
    orders = np.empty(first.shape, np.int64)
    for at in range(len(first)):
        orders[at] = _by_priority(first[at], whole, priority)
    return orders


def _with_losses(scenario: Scenario, found: Sequence[Rows]) -> list[_Remainder]:
    """Sets of victims, each once, with what they lose."""
    sets = list({rows.tobytes(): rows for rows in found}.values())
    return [*map(_Remainder, _losses(scenario, sets), sets)] if sets else []


def _losses(scenario: Scenario, sets: Sequence[Rows]) -> list[_Loss]:
    snapshot = scenario.ground.snapshot
    priorities, rank = snapshot.podgroups.once(priority_ranks)
    broken, held = breaking(snapshot, sets, rank, len(priorities), share_of(snapshot))
    return [*map(_Loss, map(tuple, broken[:, ::-1].tolist()), held.tolist())]
