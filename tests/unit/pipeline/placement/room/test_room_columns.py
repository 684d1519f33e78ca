"""Anti-affinity on single nodes as a resource of these: the slots are those that are left where tasks are repelled."""

import numpy as np
import pytest

from actors.benchmarks.figures import attempt_on
from actors.fleets.generated import GangSpec, GeneratedFleet, generate
from actors.fleets.mixed import with_anti_affinity, with_shapes
from pipeline.cluster.arrays import Longs, Rows, frozen
from pipeline.cluster.rules.anti_affinity import exclusions
from pipeline.decision.plan import Plan
from pipeline.placement.need import need_of
from pipeline.placement.room import repulsion
from pipeline.propose import host_of, propose
from pipeline.records import replace
from pipeline.solvers.bundles.bundling.bundle_search import BundleSearch
from pipeline.solvers.bundles.covering.free_room import FreeRoom
from pipeline.solvers.bundles.solver import search_of
from tests.support.repelling import repelling_itself


def fleet_of(kind: str, seed: int) -> GeneratedFleet:
    plain = generate(40, GangSpec(tasks=16, gpus=2), seed=seed, queues=0)
    if kind == "each other":
        return repelling_itself(plain)
    repelled = with_anti_affinity(plain, gang=True)
    return with_shapes(repelled, gang=True) if kind == "others, three shapes" else repelled


def search_for(fleet: GeneratedFleet) -> BundleSearch:
    attempt = attempt_on(fleet)
    return search_of(attempt, host_of(attempt), need_of(fleet.snapshot, (fleet.gang,), surplus=False))


def counted_apart(search: BundleSearch, leaving: Rows) -> Longs:
    """int64[S, N]: slots from room and from the nodes that stay closed, each looked at by itself."""
    snapshot, need = search.snapshot, search.need
    room = snapshot.room.future.copy()
    np.add.at(room, snapshot.tasks.node[leaving], snapshot.shapes.request[snapshot.tasks.shape[leaving]])
    label = snapshot.tasks.label_set[need.tasks[[int(np.argmax(need.shape == s)) for s in range(len(need.shapes))]]]
    found = exclusions(snapshot, snapshot.shapes.constraint[need.shapes], label, leaving)
    slots = np.empty((len(need.shapes), len(room)), np.int64)
    for s, request in enumerate(need.request):
        asked = request > 0
        fit = (np.maximum(room[:, asked], 0) // request[asked]).min(axis=1)
        most = 1 if found.conflict[s, s] else need.count[s]
        slots[s] = np.where(found.excluded[s] | ~search.allowed[s], 0, np.minimum(fit, most))
    return slots


@pytest.mark.parametrize("kind", ["others", "others, three shapes", "each other"])
@pytest.mark.parametrize("seed", range(4))
def test_slots_are_those_of_nodes_that_no_task_closes(kind: str, seed: int) -> None:
    search, draw = search_for(fleet_of(kind, seed)), np.random.default_rng(seed)
    assert search.repulsion is not None
    assert search.repulsion.closing
    assert search.interchangeable(np.array([0])).all()
    candidates = np.flatnonzero(search.candidate[search.snapshot.occupancy.task])
    for part in (0.0, 0.3, 0.9):
        gone = candidates[draw.random(len(candidates)) < part]
        free = FreeRoom(search, 0)
        free.leave(gone)
        assert (free.ground.slots == counted_apart(search, search.snapshot.occupancy.task[gone])).all()


@pytest.mark.parametrize("kind", ["others", "each other"])
def test_a_gang_is_decided_as_well_as_where_its_nodes_are_asked_about_one_by_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worse = better = 0
    for seed in range(6):
        fleet = fleet_of(kind, seed)
        counted = propose(attempt_on(fleet))
        with monkeypatch.context() as patched:
            patched.setattr(repulsion, "spares_other_nodes", lambda *_: False)
            asked = propose(attempt_on(replace(fleet, snapshot=replace(fleet.snapshot))))
        assert isinstance(counted, Plan)
        assert isinstance(asked, Plan)
        worse, better = worse + (counted.price > asked.price), better + (counted.price < asked.price)
    assert worse <= better


def test_a_key_that_joins_nodes_is_no_resource_of_each() -> None:
    plain = generate(40, GangSpec(tasks=2), queues=0)
    joined = replace(
        plain.snapshot,
        vocabulary=replace(plain.snapshot.vocabulary, label_keys=("zone",), label_values=(("a", "b"),)),
        nodes=replace(plain.snapshot.nodes, labels=frozen(np.arange(40)[:, None] % 2, np.int32)),
    )
    search = search_for(repelling_itself(replace(plain, snapshot=joined), "zone"))
    assert search.repulsion is not None
    assert search.repulsion.closing == ()
    assert search.repulsion.among
