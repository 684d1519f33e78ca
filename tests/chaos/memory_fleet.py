"""A fleet whose messages come late, twice, in another order or not at all, and the work that arrives on it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgpack

from actors.broker.bus import DECISIONS, EVENTS, START, id_order
from actors.fleets.fleet_tasks import RUNNING
from actors.fleets.simulated import SimulatedFleet
from actors.protocol.bodies import ResyncRequested
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack
from pipeline.cluster.vocabulary import HOSTNAME
from tests.chaos.memory_ports import KeptBus
from tests.support.assembly import Clock, gang, rack_cluster

GROUP = "fleet"
NODES, DEVICES = 3, 8
#: The label of gangs whose tasks must lie on different nodes.
APART = "apart"
#: What is refused, and a part of the reason.
POISONS: tuple[tuple[bytes | Outgoing, str], ...] = (
    (b"\xc1 not msgpack", "batch: expected msgpack"),
    (msgpack.packb({"not": "an array"}), "batch: expected an array"),
    (Outgoing("no_such_kind", "x", 1, {}), "kind: expected one of"),
    (Outgoing("task_started", "x", 1, {"task": "default/nobody", "node": "n0"}), "name of a task that is known"),
    (Outgoing("task_started", "x", 1, {"task": "default/nobody"}), "body.node"),
)


def first_cluster(draw: random.Random, racks: int, *, quotas: bool = True) -> dict[str, Any]:
    """Racks that are mostly taken by gangs of both queues, some with a surplus, some protected."""
    cluster = rack_cluster(racks, NODES, DEVICES)
    if not quotas:
        cluster["queues"] = [{"name": queue["name"]} for queue in cluster["queues"]]
    slots = [f"n{at}" for at in range(racks * NODES) for _ in range(2)]
    draw.shuffle(slots)
    del slots[: draw.randint(0, 3)]
    groups = []
    while slots:
        size = min(len(slots), draw.randint(1, 3))
        nodes = [slots.pop() for _ in range(size)]
        base = gang(f"base{len(groups)}", size, 4, queue=draw.choice("ab"), nodes=nodes, phase="Running")
        if draw.random() < 0.3:
            base["min_available"] = 1
        if draw.random() < 0.15:
            base["preemptible"] = False
        groups.append(_replaced(base, draw))
    return {**cluster, "podgroups": groups}


def arriving(draw: random.Random, serial: int, *, gathers: bool = False) -> list[dict[str, Any]]:
    """A gang that arrives; with ``gathers`` it may wish for closeness, or start only with one that comes after it."""
    first = _gang(draw, serial, "", gathers)
    if not gathers or draw.random() < 0.7:
        return [first]
    other = _gang(draw, serial, "with", gathers)
    both = [f"default/{one['name']}" for one in (first, other)]
    named = {"gang_group": both}
    return [{**first, **named}, {**other, **named} if draw.random() < 0.5 else other]


def _gang(draw: random.Random, serial: int, suffix: str, gathers: bool) -> dict[str, Any]:
    more: dict[str, Any] = {"topology": {"required": "rack"}} if draw.random() < 0.4 else {}
    if gathers and not more and draw.random() < 0.7:
        more = {"topology": {"preferred": "rack", **draw.choice(({}, {"multiples": {"rack": 2}}, {"near": "us"}))}}
        more |= draw.choice(({}, {"match_policy": "waiting-and-running"}, {"wait_seconds": 20.0}))
    made = gang(
        f"gang{serial}{suffix}", draw.randint(1, 4), draw.choice((4, 4, 8)), queue=draw.choice("ab"),
        priority=draw.choice((0, 1, 5, 9)), **more,
    )  # fmt: skip
    return _replaced(made, draw)


def _replaced(podgroup: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """Some gangs wait again once they were evicted."""
    if draw.random() < 0.4:
        for task in podgroup["tasks"]:
            task["gone_when_evicted"] = False
    return podgroup


def kept_apart(podgroup: dict[str, Any]) -> dict[str, Any]:
    """The same gang, no two tasks of which may be on one node."""
    labels = {APART: podgroup["name"]}
    apart = {"labels": labels, "pod_anti_affinity": [{"topology_key": HOSTNAME, "match_labels": labels}]}
    return {**podgroup, "tasks": [{**task, **apart} for task in podgroup["tasks"]]}


def together(fleet: SimulatedFleet) -> Iterator[str]:
    """Gangs two tasks of which run on one node although they must be apart."""
    for group in fleet._podgroups.values():
        if APART in group.document["tasks"][0].get("labels", {}):
            nodes = [task.node for name in group.tasks if (task := fleet._tasks[name]).status == RUNNING]
            if len(set(nodes)) < len(nodes):
                yield f"{group.name} runs on {nodes} and must be apart"


@dataclass(slots=True)
class Sent:
    """What was published: the poison, with its reasons, and entries of which letters may come."""

    poison: dict[str, str] = field(default_factory=dict)
    disturbed: set[str] = field(default_factory=set)
    lists: list[str] = field(default_factory=list)
    lost_before: list[str] = field(default_factory=list)


class Connector:
    """Publishes what the fleet says and has it do what was decided, each decision once."""

    def __init__(self, fleet: SimulatedFleet, bus: KeptBus, clock: Clock, draw: random.Random) -> None:
        self.fleet, self._bus, self._clock, self._draw, self._nodes = fleet, bus, clock, draw, len(fleet.nodes)
        self._outbox: list[dict[str, bytes]] = []
        self._repeats: list[dict[str, bytes]] = []
        self._number, self._consumer, self._listed, self._lists = 0, 1, START, 0
        self._done: set[tuple[str, str]] = set()
        self.sent = Sent()
        self.away = self.doubling = self.swapping = self.losing = self.losing_lists = self.losing_requests = 0
        self.dies = False
        bus.join(DECISIONS, GROUP)

    def say(self, events: list[Outgoing]) -> None:
        """Send events, at the next turn."""
        for entry in pack(events):
            self._number += 1
            self._outbox.append({**entry, "sequence": str(self._number).encode()})

    def list_fleet(self) -> None:
        """Say everything there is."""
        self._lists += 1
        self.say(self.fleet.listing(f"list-{self._lists}"))
        if self.losing_lists:
            self.losing_lists -= 1
            self._outbox.clear()
            self.sent.lost_before.append(self._bus.bounds(EVENTS).last)
            return
        self.publish()
        self._listed = self._bus.bounds(EVENTS).last
        self.sent.lists.append(self._listed)

    def poison(self) -> None:
        """Something that must be refused stands between the events."""
        what, reason = self._draw.choice(POISONS)
        fields = {"batch": what} if isinstance(what, bytes) else pack([what])[0]
        self.sent.poison[self._bus.publish(EVENTS, fields)] = reason

    def publish(self) -> None:
        """Let what was said arrive, as far as nothing goes wrong with it."""
        waiting, self._outbox = self._outbox, []
        late, self._repeats = self._repeats, []
        for fields in late:
            self.sent.disturbed.add(self._bus.publish(EVENTS, fields))
        swapped = self.swapping and len(waiting) > 1
        if swapped:
            self.swapping -= 1
            at = self._draw.randrange(len(waiting) - 1)
            waiting[at], waiting[at + 1] = waiting[at + 1], waiting[at]
        for fields in waiting:
            if self.losing:
                self.losing -= 1
                self.sent.lost_before.append(self._bus.bounds(EVENTS).last)
                continue
            entry = self._bus.publish(EVENTS, fields)
            if swapped:
                self.sent.disturbed.add(entry)
            if self.doubling:
                self.doubling -= 1
                self._repeats.append(fields)

    def turn(self) -> None:
        """What is due, what was decided, what is to be said."""
        if self.away:
            self.away -= 1
            return
        self.say(self.fleet.step(self._clock.now))
        entries = self._bus.read(DECISIONS, GROUP, f"fleet-{self._consumer}", pending=True)
        entries += self._bus.recover(DECISIONS, GROUP, f"fleet-{self._consumer}", idle_ms=0)
        entries += self._bus.read(DECISIONS, GROUP, f"fleet-{self._consumer}")
        for entry in sorted({one.id: one for one in entries}.values(), key=lambda one: id_order(one.id)):
            for message in decode_decisions(entry):
                assert isinstance(message, Message)
                self._carry_out(message)
        self.publish()
        if self.dies:
            self.dies, self._consumer = False, self._consumer + 1
            return
        self._bus.acknowledge(DECISIONS, GROUP, [entry.id for entry in entries])

    def _carry_out(self, message: Message) -> None:
        if isinstance(message.body, ResyncRequested):
            if self.losing_requests:
                self.losing_requests -= 1
            elif id_order(message.body.read) >= id_order(self._listed):
                self.publish()
                self.list_fleet()
            return
        if (message.uid, message.kind) not in self._done:
            self._done.add((message.uid, message.kind))
            self.say(self.fleet.obey(message, self._clock.now))

    def lose_node(self) -> None:
        """One node less, as long as most are left."""
        if len(self.fleet.nodes) > self._nodes - 2:
            self.say(self.fleet.fail_node(self._draw.choice(self.fleet.nodes)))

    def remove_gang(self, promised: set[str]) -> None:
        """A gang goes; rather one that was promised room than another that waits."""
        waiting = [
            name
            for name, group in self.fleet._podgroups.items()
            if all(self.fleet._tasks[task].status != RUNNING for task in group.tasks)
        ]
        chosen = [name for name in waiting if name in promised] or waiting
        if chosen:
            self.remove(self._draw.choice(chosen))

    def remove(self, name: str) -> None:
        """A podgroup is deleted by its owner."""
        group = self.fleet._podgroups.pop(name)
        for task in group.tasks:
            held = self.fleet._tasks.pop(task)
            if held.node is not None and held.node in self.fleet._held:
                for resource, amount in held.request.items():
                    self.fleet._held[held.node][resource] -= amount
            held.status, held.node = "Over", None
        self.say([self.fleet._say("podgroup_removed", name, {"podgroup": name})])
