"""Too much at once, a broker that stalls, an ingestor that is killed: what is held stays bounded, nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from actors.broker.bus import DEAD, DECISIONS, EVENTS, SNAPSHOTS, START, BrokerUnreachable, Bus
from actors.broker.embedded_broker import EmbeddedBroker
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
from actors.broker.retry import RetryPolicy
from actors.documents.safe_msgpack import WIRE_LIMITS
from actors.ingestion.group_notes import GROUP
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.interpreter import Interpreter
from actors.ingestion.pace import Pace
from actors.protocol.bodies import PlanWithdrawn
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, decode_events, pack, pack_decision
from actors.protocol.full_list import cut
from tests.support.told_world import state_of

ROOT = Path(__file__).parents[2]
EAGER = RetryPolicy(first_s=0.005, cap_s=0.02)
LIMIT_S = 120.0
GANGS, TASKS = 200, 10
ONE_LIFE = 2 * GANGS * TASKS
PACE = Pace(entries=10, read_bytes=1 << 20, checkpoint_every_s=1e6, checkpoint_every_entries=25)
CLUSTER: dict[str, Any] = {
    "version": 1,
    "nodes": [{"name": f"n{at}", "allocatable": {"cpu": 64, "pods": 110}} for at in range(40)],
    "queues": [{"name": "q"}],
    "podgroups": [
        {"name": f"g{at}", "queue": "q", "tasks": [{"name": f"g{at}", "count": TASKS, "request": {"cpu": 1}}]}
        for at in range(GANGS)
    ],
}


class Told:
    """A fleet of 2,000 tasks that start and end over and over, each entry with its number."""

    def __init__(self, bus: Bus) -> None:
        self._bus, self._revision, self.entries = bus, 0, 0
        self.events = 0
        for part in cut(CLUSTER, "list"):
            self._send(Outgoing("fleet_listed", "fleet", 1, part))

    def _send(self, *messages: Outgoing) -> None:
        for entry in pack(messages, None, replace(WIRE_LIMITS, messages=500)):
            self.entries += 1
            self._bus.publish(EVENTS, {**entry, "sequence": str(self.entries).encode()}, insist=True)

    def life(self, life: int) -> None:
        """Every task starts, ends and waits again: 4,000 events."""
        said = []
        for at in range(GANGS * TASKS):
            task = f"default/g{at // TASKS}-{at % TASKS}"
            node = f"n{(at + life) % 40}"
            said.append(self._outgoing("task_started", task, {"task": task, "node": node, "incarnation": life}))
            ended = {"task": task, "outcome": "Evicted", "incarnation": life, "replaced": True}
            said.append(self._outgoing("task_ended", task, ended))
        self._send(*said)
        self.events += len(said)

    def poison(self) -> None:
        """What must be refused."""
        self._send(self._outgoing("task_started", "x", {"task": "default/nobody", "node": "n1"}))
        self._bus.publish(EVENTS, {"batch": b"\xc1"}, insist=True)

    def _outgoing(self, kind: str, uid: str, body: Mapping[str, Any]) -> Outgoing:
        self._revision += 1
        return Outgoing(kind, uid, self._revision, body)


class Watched(Ingestor):
    """An ingestor that notes how much it ever held."""

    most_bytes = most_entries = 0

    def _arrived(self, block_ms: int) -> Any:
        found = super()._arrived(block_ms)
        entries = [*found[0], *found[1], *self._held[EVENTS], *self._held[DECISIONS]]
        self.most_entries = max(self.most_entries, len(entries))
        self.most_bytes = max(self.most_bytes, sum(len(one) for entry in entries for one in entry.fields.values()))
        return found


def meanwhile(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def drain(ingestor: Ingestor, whole: Callable[[], bool]) -> None:
    """Poll until there is nothing more and all was said."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        said = whole()
        if not ingestor.poll(50) and not ingestor.behind and said:
            return
        assert time.monotonic() < deadline, "the burst was not folded in time"


def test_a_burst_of_a_hundred_thousand_events_is_folded_in_bounded_pieces(
    client: RedisClient, broker: EmbeddedBroker, fleet_name: str
) -> None:
    bus, beside = RedisBus(client, fleet_name), RedisClient(broker.url)
    told = Told(RedisBus(beside, fleet_name))
    bus.join(DECISIONS, "a slow fleet")
    ingestor = Watched(bus, consumer="me", now_s=time.time, pace=PACE)
    ingestor.start()
    before = ingestor.snapshot.revision
    decisions = 0

    def burst() -> None:
        nonlocal decisions
        for life in range(25):
            told.life(life)
            told.poison()
            for number in range(10):
                withdrawn = PlanWithdrawn(plan_id=f"p{life}-{number}", reason="load")
                sent = pack_decision(Outgoing("plan_withdrawn", withdrawn.plan_id, 0, withdrawn))
                decisions += 1
                told._bus.publish(DECISIONS, {**sent, "revision": str(decisions).encode()}, insist=True)

    burst_thread = meanwhile(burst)
    drain(ingestor, lambda: not burst_thread.is_alive())
    assert told.events == 100_000
    assert ingestor.snapshot.revision == before + told.events + decisions
    assert ingestor.snapshot.tasks.incarnation.tolist() == [25] * GANGS * TASKS
    assert ingestor.snapshot.decided == decisions == 250
    assert bus.bounds(DEAD).added == 50
    assert ingestor.most_entries <= 4 * PACE.entries
    assert ingestor.most_bytes <= 6 * PACE.read_bytes
    assert bus.bounds(EVENTS).length <= 2 * PACE.checkpoint_every_entries + 8 * PACE.entries
    # The fleet obeyed nothing meanwhile: everything that was decided is still there for it.
    assert bus.lags(DECISIONS)["a slow fleet"].undelivered == decisions
    entries = bus.read(DECISIONS, "a slow fleet", "it", count=1_000)
    found = [one for entry in entries for one in decode_decisions(entry)]
    assert [one.revision for one in found if isinstance(one, Message)] == list(range(1, decisions + 1))
    bus.acknowledge(DECISIONS, "a slow fleet", [entry.id for entry in entries])
    for _ in range(2):
        ingestor.checkpoint()
    assert bus.bounds(DECISIONS).length == 1
    beside.close()


def test_a_broker_that_stalls_freezes_and_dies_loses_nothing(own_broker: EmbeddedBroker) -> None:
    links = [RedisClient(own_broker.url, retry=EAGER, say=lambda _: None) for _ in range(2)]
    told, bus = Told(RedisBus(links[0], "f")), RedisBus(links[1], "f")
    ingestor = Watched(bus, consumer="me", now_s=time.time, pace=PACE)
    ingestor.start()
    lives = [threading.Event() for _ in range(12)]

    def burst() -> None:
        for life, said in enumerate(lives):
            told.life(life)
            said.set()

    speaker = meanwhile(burst)
    folder = meanwhile(lambda: drain(ingestor, lambda: not speaker.is_alive()))
    impatient = redis.Redis.from_url(own_broker.url, socket_timeout=0.2, retry=None)
    assert lives[1].wait(LIMIT_S)
    impatient.execute_command("CLIENT", "PAUSE", "300", "ALL")
    assert lives[3].wait(LIMIT_S)
    os.kill(own_broker.pid, signal.SIGSTOP)
    with pytest.raises(redis.TimeoutError):
        impatient.ping()
    os.kill(own_broker.pid, signal.SIGCONT)
    for at in (5, 8):
        assert lives[at].wait(LIMIT_S)
        own_broker.kill()
        own_broker.start()
    speaker.join(LIMIT_S)
    folder.join(LIMIT_S)
    assert ingestor.snapshot.tasks.incarnation.tolist() == [12] * GANGS * TASKS
    assert ingestor.snapshot.tasks.revision.max() == 12 * ONE_LIFE
    assert bus.bounds(DEAD).added == 0
    assert bus.bounds(DECISIONS).added == 0  # no list was asked for
    assert ingestor.most_bytes <= 6 * PACE.read_bytes
    for link in links:
        link.close()


KILLED = """
import sys, time
from actors.ingestion.ingestor import Ingestor
from actors.ingestion.pace import Pace
from actors.broker.redis_bus import RedisBus
from actors.broker.redis_client import RedisClient
pace = Pace(entries=2, checkpoint_every_s=1e6, checkpoint_every_entries=6)
ingestor = Ingestor(RedisBus(RedisClient(sys.argv[1]), sys.argv[2]), consumer=sys.argv[3], now_s=time.time, pace=pace)
ingestor.start()
while True:
    ingestor.poll(50)
"""


def test_an_ingestor_killed_in_mid_burst_leaves_a_state_that_is_recovered_to_the_byte(
    client: RedisClient, broker: EmbeddedBroker, fleet_name: str
) -> None:
    bus = RedisBus(client, fleet_name)
    bus.join(EVENTS, "history")  # so that everything can be read again
    told = Told(bus)
    seen = START
    for number in range(2):
        for life in range(6 * number, 6 * number + 6):
            told.life(life)
        command = [sys.executable, "-c", KILLED, broker.url, fleet_name, f"number {number}"]
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            while not (
                found := [one for one in bus.follow(SNAPSHOTS, seen, block_ms=5_000) if "manifest" in one.fields]
            ):
                assert process.poll() is None
            seen = found[-1].id
        finally:
            process.kill()
            process.wait()
    recovered = Ingestor(bus, consumer="last", now_s=time.time, pace=PACE)
    recovered.start()
    while recovered.poll() or recovered.behind:
        pass
    assert bus.lags(EVENTS)[GROUP].undelivered == 0
    straight, after = Interpreter(), START
    while entries := bus.follow(EVENTS, after, count=50):
        for entry in entries:
            for message in decode_events(entry):
                assert isinstance(message, Message)
                straight.take(message)
            straight.state.sequence = int(entry.fields["sequence"])
            straight.flush()
        after = entries[-1].id
    assert recovered.snapshot.tasks.incarnation.tolist() == [12] * GANGS * TASKS
    assert b"".join(straight.encode()[:-1]) == b"".join(state_of(recovered))


def test_a_full_broker_gives_room_back(own_broker: EmbeddedBroker) -> None:
    client = RedisClient(own_broker.url, retry=EAGER, say=lambda _: None)
    bus = RedisBus(client, "f")
    bus.join(EVENTS, "g")
    ids = [bus.publish(EVENTS, {"batch": b"x" * 100_000}) for _ in range(100)]
    bus.read(EVENTS, "g", "me", count=90)
    bus.acknowledge(EVENTS, "g", ids[:90])
    assert bus.trim(EVENTS, covered=START) == 0  # the functions are there by now
    client.once(lambda connection: connection.config_set("maxmemory", "1mb"))
    with pytest.raises(BrokerUnreachable, match="maxmemory"):
        bus.publish(EVENTS, {"batch": b"x"})
    waiting = meanwhile(lambda: bus.publish(EVENTS, {"batch": b"waits"}, insist=True))
    assert bus.lags(EVENTS)["g"].undelivered == 10
    assert bus.trim(EVENTS, covered=ids[89]) == 89
    client.once(lambda connection: connection.config_set("maxmemory", "6mb"))
    waiting.join(LIMIT_S)
    assert bus.newest(EVENTS)[0].fields["batch"] == b"waits"
    client.close()
