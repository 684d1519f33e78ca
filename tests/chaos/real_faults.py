"""How each fault is done to a world. Sleeps here are faults: for so long something is frozen, silent or gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from actors.broker.bus import DECISIONS, EVENTS, SNAPSHOTS
from actors.broker.ledger import Lease
from tests.chaos.real_ray import LIMIT_S, Worker, until
from tests.chaos.real_schedule import Fault, Kind, Moment
from tests.chaos.real_world import LEASE_S, World

T = TypeVar("T")
#: A decision that a fault waits for comes within so long, or another gang is sent.
_NEXT_S = 4.0
#: How long commands gather in a frozen broker before and after the fault strikes.
_HELD_S = 0.15
_FROM_ARRIVAL_TO_OFFER = 0.15
_CUT_EVERY_S = 0.02
_GANGS_MEANWHILE = 4
#: From the end of a leader to the first decision of its standby; a lease lasts one of these seconds.
TAKEOVER_S = 10.0
#: Gangs that arrive meanwhile are above all others but the last, so that there is something to decide.
_URGENT = 100


def strike(world: World, fault: Fault) -> None:
    """A gang arrives, and at the fault's moment it happens; afterwards everything lives again."""
    world.watch()
    before, saved = world.bus.bounds(EVENTS).last, world.bus.bounds(SNAPSHOTS).last
    world.arrive()
    world.arrive()
    if fault.moment is Moment.RECORDED:
        _await_decision(world)
    elif fault.moment is Moment.SAVED:
        world.bus.follow(SNAPSHOTS, saved, block_ms=int(_NEXT_S * 1000))
    elif fault.moment is Moment.OFFERED:
        world.bus.follow(EVENTS, before, block_ms=2_000)
        time.sleep(fault.after_s * _FROM_ARRIVAL_TO_OFFER)
    else:
        time.sleep(fault.after_s)
    _HOW[fault.kind](world, fault)


def _await_decision(world: World) -> None:
    deadline = time.monotonic() + 4 * _NEXT_S
    while not world.watch(block_ms=int(_NEXT_S * 1000)) and time.monotonic() < deadline:
        world.arrive()


def _one_of(world: World, choices: Sequence[T]) -> T:
    return choices[world.schedule.seed % len(choices)]


def _target(world: World, fault: Fault) -> Worker:
    """The process that is meant; of several searchers one that the seed chooses."""
    return _one_of(world, world.living(fault.role))


def _kill(world: World, fault: Fault) -> None:
    if fault.moment is Moment.OFFERED:
        target = _target(world, fault)
        world.freeze_broker()
        time.sleep(_HELD_S)
        world.raylets.kill(target)
        time.sleep(_HELD_S)
        world.raylets.thaw()
    else:
        world.raylets.kill(_target(world, fault))


def _freeze(world: World, fault: Fault) -> None:
    world.raylets.freeze_worker(_target(world, fault))
    time.sleep(fault.for_s)
    world.raylets.thaw()


def _pause_broker(world: World, fault: Fault) -> None:
    world.freeze_broker()
    time.sleep(fault.for_s)
    world.raylets.thaw()


def _pause_clients(world: World, fault: Fault) -> None:
    world.link.ask(lambda client: client.execute_command("CLIENT", "PAUSE", int(fault.for_s * 1000), "ALL"))
    world.watch()  # answers when the pause is over


def _kill_broker(world: World, fault: Fault) -> None:
    world.kill_broker()
    time.sleep(fault.for_s)
    world.restart_broker()


def _lose_power(world: World, fault: Fault) -> None:
    world.lose_power()
    time.sleep(fault.for_s)
    world.restart_broker()


def _cut(world: World, fault: Fault) -> None:
    """What was asked may have been done, and the answer is lost."""
    ends = time.monotonic() + fault.for_s
    while time.monotonic() < ends:
        world.link.ask(lambda client: client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))
        time.sleep(_CUT_EVERY_S)


def _rival(world: World, fault: Fault) -> None:
    """The lease runs out while the committer is frozen, and somebody else has it when it thaws."""
    world.raylets.freeze_worker(_target(world, fault))
    held: list[Lease] = []

    def taken() -> bool:
        answer = world.ledger.acquire("rival", int(10_000 * LEASE_S))
        held.extend([answer] if isinstance(answer, Lease) else [])
        return bool(held)

    until(taken, "the lease of a frozen committer runs out")
    before = world.bus.bounds(DECISIONS).last
    world.raylets.thaw()
    world.arrive()
    time.sleep(fault.for_s)
    for entry in world.bus.follow(DECISIONS, before):
        if b"resync_requested" not in entry.fields["batch"]:
            world.objections.append(f"decision {entry.id} was recorded while somebody else held the lease")
    world.ledger.release(held[0])


def _misbehave(world: World, fault: Fault) -> None:
    """Gangs arrive all the while, so that there is something to be said."""
    world.fleet.misbehave(fault.kind, fault.for_s)
    for _ in range(_GANGS_MEANWHILE):
        world.arrive()
        time.sleep(fault.for_s / _GANGS_MEANWHILE)


def _lose_node(world: World, fault: Fault) -> None:
    del fault
    world.fleet.lose(_one_of(world, world.fleet.fleet.nodes))


def _freeze_raylet(world: World, fault: Fault) -> None:
    """One committer too many: the frozen raylet's workers go on, and Ray starts others."""
    first = _away_from_head(world, fault.role)
    world.raylets.freeze(world.raylets.raylet(first.node))

    def replaced() -> bool:
        return any(one.alive and one.role == fault.role and one.pid != first.pid for one in world.raylets.workers())

    until(replaced, "Ray starts a second committer")
    world.arrive()
    _await_decision(world)
    world.raylets.thaw()
    world.arrive()


def _kill_raylet(world: World, fault: Fault) -> None:
    lost = _away_from_head(world, fault.role)
    world.arrive()
    world.raylets.lose(lost.node)
    world.arrive()


def _away_from_head(world: World, role: str) -> Worker:
    """The worker of a role, which Ray is made to place on another raylet than that of this driver."""
    found: list[Worker] = []

    def away() -> bool:
        one = world.raylets.living(role)[0]
        if one.node == world.raylets.head:
            world.raylets.kill(one)
            until(lambda: all(two.pid != one.pid for two in world.raylets.workers()), "a killed worker is missed")
            return False
        found.append(one)
        return True

    until(away, f"the {role} is placed away from the head")
    return found[-1]


def _take_over(world: World, fault: Fault) -> None:
    """The leader is struck, and the standby must decide soon; afterwards there are two again."""
    pair, epoch, began = world.pair, world.newest_epoch(), time.monotonic()
    assert pair is not None
    {Kind.KILL_LEADER: pair.kill_leader, Kind.FREEZE_LEADER: pair.freeze_leader, Kind.STOP_LEADER: pair.stop_leader}[
        fault.kind
    ]()
    while world.newest_epoch() <= epoch and time.monotonic() < began + LIMIT_S:
        world.arrive(tasks=1, priority=_URGENT + len(world.arrived))
        world.watch(block_ms=500)
    world.took_over_s.append(time.monotonic() - began)
    if world.took_over_s[-1] > TAKEOVER_S:
        world.objections.append(f"a standby decided after {world.took_over_s[-1]:.1f} s only: {fault}")
    if fault.kind is Kind.FREEZE_LEADER:
        time.sleep(fault.for_s)
        pair.thaw()
    world.all_living()


_HOW: dict[Kind, Callable[[World, Fault], None]] = {
    Kind.KILL: _kill, Kind.FREEZE: _freeze, Kind.PAUSE_BROKER: _pause_broker, Kind.PAUSE_CLIENTS: _pause_clients,
    Kind.KILL_BROKER: _kill_broker, Kind.LOSE_POWER: _lose_power, Kind.CUT: _cut, Kind.RIVAL: _rival,
    Kind.DUPLICATE: _misbehave, Kind.REORDER: _misbehave, Kind.DELAY: _misbehave, Kind.POISON: _misbehave,
    Kind.LOSE_NODE: _lose_node, Kind.FREEZE_RAYLET: _freeze_raylet, Kind.KILL_RAYLET: _kill_raylet,
    Kind.KILL_LEADER: _take_over, Kind.FREEZE_LEADER: _take_over, Kind.STOP_LEADER: _take_over,
}  # fmt: skip
