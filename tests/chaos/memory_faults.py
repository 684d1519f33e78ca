"""What befalls the world at a turn, by kind of fault; what strikes at a step of a role is the injector's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from actors.broker.bus import EVENTS
from tests.chaos.schedule import Fault, Kind

if TYPE_CHECKING:
    from tests.chaos.memory_world import World
    from tests.support.assembly import Assembly

#: Victims that end late take this long, and clocks jump by one of these; seconds.
LATE_S, JUMPS_S = (15.0, 30.0), (-30.0, -5.0, 5.0, 30.0)


#: What a copy of the broker has of the ledger.
_LEDGER = ("_held", "_epoch", "_revision", "_recorded")


def copied(world: World | Assembly) -> dict[str, Any]:
    """All that the broker holds."""
    streams = deepcopy((world.bus._logs, world.bus._seen))
    return {"streams": streams, **{name: deepcopy(getattr(world.ledger, name)) for name in _LEDGER}}


def restored(world: World | Assembly, copy: dict[str, Any]) -> None:
    """The broker holds that again."""
    world.bus._logs, world.bus._seen = copy["streams"]
    for name in _LEDGER:
        setattr(world.ledger, name, copy[name])


def _copy(world: World, _fault: Fault) -> None:
    world.copy = copied(world)


def _restore(world: World, fault: Fault) -> None:
    restored(world, world.copy)
    world.restored = True
    if fault.role:
        world.connector.list_fleet()


def _lose_batch(world: World, fault: Fault) -> None:
    world.search.losing += fault.lasts


def _lose_answers(world: World, fault: Fault) -> None:
    world.losing_answers += fault.lasts


def _offer_again(world: World, fault: Fault) -> None:
    for seat in world.seats:
        world.ask_at(seat, world.draw.sample(world.offered, min(fault.lasts, len(world.offered))))


def _hold_offers(world: World, fault: Fault) -> None:
    world.holding += fault.lasts


def _no_news(world: World, fault: Fault) -> None:
    world.ingest, world.ingestor_away = None, fault.lasts


def _behind(world: World, fault: Fault) -> None:
    if fault.role == "dispatcher":
        world.dispatcher_behind += fault.lasts
    else:
        world.draw.choice(world.seats).behind += fault.lasts


def _away(world: World, fault: Fault) -> None:
    world.connector.away += fault.lasts


def _connector_dies(world: World, _fault: Fault) -> None:
    world.connector.dies = True


def _duplicate(world: World, fault: Fault) -> None:
    world.connector.doubling += fault.lasts


def _reorder(world: World, fault: Fault) -> None:
    world.connector.swapping += fault.lasts


def _hole(world: World, _fault: Fault) -> None:
    world.connector.losing += 1


def _poison(world: World, fault: Fault) -> None:
    for _ in range(0 if world.injector.refuses() else fault.lasts):
        world.connector.poison()


def _lose_node(world: World, _fault: Fault) -> None:
    world.connector.lose_node()


def _remove_gang(world: World, _fault: Fault) -> None:
    world.connector.remove_gang(world.promised())


def _lose_list(world: World, _fault: Fault) -> None:
    world.connector.losing_lists += 1
    _lose_events(world)


def _lose_request(world: World, _fault: Fault) -> None:
    world.connector.losing_requests += 1
    _lose_events(world)


def _lose_events(world: World) -> None:
    """So that a list is asked for."""
    world.connector.losing += 1


def _same_moment(world: World, fault: Fault) -> None:
    world.standing += fault.lasts


def _clock_jump(world: World, fault: Fault) -> None:
    world.broker_clock.ahead_s += world.draw.choice(JUMPS_S) * fault.lasts


def _host_clock(world: World, fault: Fault) -> None:
    world.hosts[fault.role].ahead_s += world.jumps.choice(JUMPS_S) * fault.lasts


def _disk_full(world: World, fault: Fault) -> None:
    world.injector.full_until = world.clock.now + 2.0 * fault.lasts


def _drop_replies(world: World, fault: Fault) -> None:
    world.injector.dropping[fault.role] += fault.lasts


def _repeat(world: World, fault: Fault) -> None:
    world.injector.repeating[fault.role] += 3 * fault.lasts


def _delay(world: World, fault: Fault) -> None:
    world.injector.slow_until = world.clock.now + 10.0 * fault.lasts


def _late_deaths(world: World, _fault: Fault) -> None:
    world.connector.fleet._grace_s = LATE_S


def _gap(world: World, fault: Fault) -> None:
    world.ingest, world.ingestor_away = None, fault.lasts
    world.turn()
    world.bus.forget(EVENTS, max(0, world.bus.bounds(EVENTS).length - world.draw.choice((0, 1, 3))))


BEFALL: Mapping[Kind, Callable[[World, Fault], None]] = {
    Kind.LOSE_BATCH: _lose_batch,
    Kind.LOSE_ANSWERS: _lose_answers,
    Kind.OFFER_AGAIN: _offer_again,
    Kind.HOLD_OFFERS: _hold_offers,
    Kind.NO_NEWS: _no_news,
    Kind.BEHIND: _behind,
    Kind.AWAY: _away,
    Kind.CONNECTOR_DIES: _connector_dies,
    Kind.DUPLICATE: _duplicate,
    Kind.REORDER: _reorder,
    Kind.HOLE: _hole,
    Kind.POISON: _poison,
    Kind.LOSE_NODE: _lose_node,
    Kind.REMOVE_GANG: _remove_gang,
    Kind.LOSE_LIST: _lose_list,
    Kind.LOSE_REQUEST: _lose_request,
    Kind.SAME_MOMENT: _same_moment,
    Kind.CLOCK_JUMP: _clock_jump,
    Kind.HOST_CLOCK: _host_clock,
    Kind.DISK_FULL: _disk_full,
    Kind.DROP_REPLIES: _drop_replies,
    Kind.REPEAT: _repeat,
    Kind.DELAY: _delay,
    Kind.LATE_DEATHS: _late_deaths,
    Kind.GAP: _gap,
    Kind.COPY: _copy,
    Kind.RESTORE: _restore,
}
