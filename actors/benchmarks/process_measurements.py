"""Benchmarks of whole processes: the broker, a cold start, several searchers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from actors.benchmarks.figures import FEW, RUNS, Figure, NotAvailable, attempt_on, timed
from actors.configuration.profiles import load_profile
from actors.fleets.generated import GangSpec, generate
from pipeline.propose import propose


def _commit_100() -> Figure:
    """A decision of 100 operations recorded in an embedded broker: packed, sent, written, answered."""
    from actors.broker.embedded_broker import EmbeddedBroker
    from actors.broker.ledger import Lease, Record, Recorded
    from actors.broker.redis_client import RedisClient
    from actors.broker.redis_ledger import RedisLedger
    from actors.protocol.envelopes import Outgoing, pack_decision

    with EmbeddedBroker() as broker:
        link = RedisClient(broker.url)
        ledger = RedisLedger(link, "bench")
        lease = ledger.acquire("bench", 600_000)
        if not isinstance(lease, Lease):
            raise NotAvailable(f"the broker's lease is held by {lease.owner}")
        made = 0

        def commit() -> None:
            nonlocal made
            made += 1
            key = f"plan-{made}"
            body = {
                "plan_id": key,
                "epoch": 1,
                "action": "reclaim",
                "evictions": [{"task": f"default/victim-{n}", "incarnation": 1} for n in range(50)],
                "nominations": [{"task": f"default/gang-{n}", "node": f"node-{n}"} for n in range(50)],
            }
            packed = pack_decision(Outgoing("plan_committed", key, made, body))
            (outcome,) = ledger.commit(lease, [Record(key, b"accepted", packed)])
            if not isinstance(outcome, Recorded):
                raise NotAvailable(f"the broker answered {outcome}")

        figure = timed(commit, 4 * RUNS, operations=100)
        link.close()
    return figure


def _cold_start() -> Figure:
    """From the start of a new process to its first decision on 1,000 nodes, with compiled code cached."""
    code = "from actors.benchmarks.process_measurements import first_decision; first_decision()"
    folder = Path(__file__).resolve().parents[2]

    def start() -> None:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, stdout=subprocess.DEVNULL)

    return timed(start, FEW)


def first_decision() -> None:
    """Decide once on a small fleet; run in a process that has just started."""
    propose(attempt_on(generate(1_000, GangSpec())))


def _contention() -> Figure:
    """Gangs that starve at once: how many are placed per second, and the share of plans refused, by searchers."""
    from actors.benchmarks.contention import EPISODES, NODES, compared
    from actors.broker.embedded_broker import EmbeddedBroker
    from actors.broker.redis_bus import RedisBus
    from actors.broker.redis_client import RedisClient
    from actors.broker.redis_ledger import RedisLedger

    with EmbeddedBroker() as broker:
        link = RedisClient(broker.url)
        found = compared(load_profile("default"), lambda name: (RedisLedger(link, name), RedisBus(link, name)))
        link.close()
    return Figure(None, None, len(found) * EPISODES, {"nodes": NODES, **found})


PROCESS_MEASUREMENTS: dict[str, Callable[[], Figure]] = {
    "commit_100": _commit_100,
    "contention": _contention,
    "cold_start": _cold_start,
}
