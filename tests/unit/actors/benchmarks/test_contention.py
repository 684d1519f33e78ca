"""The benchmark of many gangs at once measures what it says."""

from dataclasses import replace

import numpy as np

from actors.benchmarks.contention import ModelledSearchers, ModelledTime, contended, episode
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.configuration.profiles import load_profile
from actors.configuration.settings import TelemetrySettings
from actors.contracts import Batch, Searched
from actors.fleets.generated import GangSpec
from actors.observability.telemetry import start
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.policy import Purpose

FLEET = contended(300, 4, GangSpec(16, 1, "rack"))


class Lazy:
    """A search that finds nothing and remembers who was asked."""

    def __init__(self) -> None:
        self.asked: list[list[GangGroup]] = []
        self.on: list[Snapshot] = []

    def search(self, snapshot: Snapshot, batches: list[Batch]) -> list[Searched]:
        self.on.append(snapshot)
        self.asked.append([batch.podgroups for batch in batches])
        return [Searched(batch.preemptor, None) for batch in batches]


def test_the_gangs_of_a_contended_fleet_are_apart_and_wait_whole() -> None:
    snapshot, first = FLEET.snapshot, FLEET.gang
    assert len(snapshot.podgroups) == first + 4
    assert snapshot.podgroups.min_available[first:].tolist() == [16] * 4
    assert np.bincount(snapshot.tasks.podgroup)[first:].tolist() == [16] * 4
    assert len(np.unique(snapshot.podgroups.order)) == len(snapshot.podgroups)
    assert (snapshot.tasks.node[snapshot.tasks.podgroup >= first] == NONE).all()


def test_searchers_share_the_batches_and_each_derives_for_itself() -> None:
    lazy, clock = Lazy(), ModelledTime()
    batches = [Batch(at, (at,), "preempt", Purpose.PREEMPT, frozen([0], np.int64), 0.0, cells=1) for at in range(5)]
    before = clock.now
    found = ModelledSearchers(lazy, 2, clock).search(FLEET.snapshot, batches)
    assert sorted(one.preemptor for one in found) == [0, 1, 2, 3, 4]
    assert sorted(map(len, lazy.asked)) == [2, 3]
    assert clock.now > before
    assert len({id(one) for one in lazy.on}) == 2


def test_an_episode_ends_when_every_gang_has_its_room() -> None:
    """However long a search takes on this machine, which may have to compile it first."""
    bus, patient = MemoryBus("contention"), replace(load_profile("default"), plan_ttl_s=1e6)
    done = episode(
        FLEET, 4, 8, policy=patient, ledger=MemoryLedger(bus), bus=bus,
        telemetry=start(TelemetrySettings(), "bench"),
    )  # fmt: skip
    assert (done.gangs, done.placed) == (4, 4)
    assert done.cycles >= 1
    assert done.took_s > 0
