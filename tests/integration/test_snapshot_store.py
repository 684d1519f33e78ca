"""Snapshots in Ray's object store, from one process to another."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import ray

from actors.benchmarks.state_measurements import ends_of
from actors.fleets.generated import GangSpec, generate
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.transport.snapshot_store import SnapshotStore, _large
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.what_if import WhatIf
from tests.support.encoded import encoded

LIMIT_S = 30.0
NODES = 400


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A Ray cluster for these tests."""
    with ray_cluster(None, "test-snapshot-store"):
        yield


@pytest.fixture(scope="module")
def states() -> list[Snapshot]:
    """A fleet, and what becomes of it with every hundred events."""
    states = [generate(NODES, GangSpec()).snapshot]
    rows = np.flatnonzero(states[0].tasks.node != NONE)[:2_000]
    for some in np.split(rows, 20):
        states.append(fold(states[-1], Changes(tasks=ends_of(states[-1], some))))
    return states


class Elsewhere:
    """A store in another process."""

    def __init__(self) -> None:
        self.store = SnapshotStore()

    def encoded(self, reference: list[object]) -> bytes:
        """The snapshot as bytes."""
        return encoded(self.store.fetch(reference[0], LIMIT_S))


def test_what_another_process_fetches_is_what_was_published(states: list[Snapshot]) -> None:
    store, other = SnapshotStore(), ray.remote(Elsewhere).remote()
    for state in states[:3]:
        assert ray.get(other.encoded.remote([store.publish(state)]), timeout=LIMIT_S) == encoded(state)


def test_a_fetched_snapshot_is_read_only(states: list[Snapshot]) -> None:
    there = SnapshotStore().fetch(SnapshotStore().publish(states[0]), LIMIT_S)
    assert not there.tasks.status.flags.writeable
    assert not there.queues.weight.flags.writeable


def test_only_what_changed_is_stored_again_and_only_that_is_fetched_again(states: list[Snapshot]) -> None:
    here, there = SnapshotStore(), SnapshotStore()
    first = there.fetch(here.publish(states[0]), LIMIT_S)
    second = there.fetch(here.publish(states[1]), LIMIT_S)
    changed = set()
    for name in states[0].tasks.__dataclass_fields__:
        same = getattr(states[1].tasks, name) is getattr(states[0].tasks, name)
        assert (getattr(second.tasks, name) is getattr(first.tasks, name)) == same
        changed |= set() if same else {name}
    assert changed == {"incarnation", "node", "revision", "status"}
    assert second.vocabulary is first.vocabulary
    everything, news = here._written.values()
    assert {id(value) for value in everything} == {id(value) for value in _arrays(states[0])}
    assert not {id(value) for value in news} & {id(value) for value in everything}


def test_the_same_snapshot_is_published_and_fetched_once(states: list[Snapshot]) -> None:
    here, there = SnapshotStore(), SnapshotStore()
    reference = here.publish(states[0])
    assert here.publish(states[0]) == reference
    assert there.fetch(reference, LIMIT_S) is there.fetch(reference, LIMIT_S)
    assert there.publish(there.fetch(reference, LIMIT_S)) == reference


def test_what_if_on_a_fetched_snapshot_refers_to_what_was_fetched(states: list[Snapshot]) -> None:
    here, there, third = SnapshotStore(), SnapshotStore(), SnapshotStore()
    known = there.fetch(here.publish(states[0]), LIMIT_S)
    evicted = WhatIf.of(known).evicting(np.flatnonzero(known.tasks.node != NONE)[:3]).whole
    assert encoded(third.fetch(there.publish(evicted), LIMIT_S)) == encoded(evicted)
    written = [on for page, on in there._written.items() if page not in there._read]
    new = {id(value) for on in written for value in on}
    assert id(evicted.tasks.status) in new
    assert not new & {id(value) for value in _arrays(known)}


def test_pages_that_the_newest_snapshot_does_not_need_are_let_go(states: list[Snapshot]) -> None:
    here = SnapshotStore()
    for state in states:
        here.publish(state)
        _, *news = here._written.values()
        in_use = {id(value) for value in _arrays(state)}
        assert len(news) <= 1
        assert all(id(value) in in_use for on in news for value in on)


def test_all_is_stored_anew_before_single_arrays_keep_too_many_pages(states: list[Snapshot]) -> None:
    here, state = SnapshotStore(), states[0]
    whole = sum(map(_bytes, _arrays(state)))
    for name in ("podgroup", "shape", "role", "subgroup", "priority", "node", "nominated", "card", "index"):
        tasks = {**vars(state.tasks), name: getattr(state.tasks, name).copy()}
        tasks |= {big: tasks[big].copy() for big in ("created", "order", "incarnation", "revision")}
        state = replace(state, tasks=type(state.tasks)(**tasks))
        here.publish(state)
        assert sum(_bytes(value) for on in here._written.values() for value in on) <= 2 * whole


def _arrays(state: Snapshot) -> list[Any]:
    """Everything of a snapshot that belongs on pages, its totals and its index too."""
    return list(_large(state.packed()))


def _bytes(value: object) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else 0
