"""Fleets in which more than resources matter: what they are made to have, and that a gang still finds room there."""

import numpy as np
import pytest

from actors.benchmarks.figures import attempt_on
from actors.fleets.generated import RESOURCES, GangSpec, GeneratedFleet, generate
from actors.fleets.mixed import MIXED, with_amounts
from pipeline.cluster.arrays import NONE
from pipeline.decision.plan import Plan
from pipeline.propose import propose

GANG = GangSpec(tasks=64)


@pytest.fixture(scope="module")
def plain() -> GeneratedFleet:
    return generate(256, GANG, queues=0)


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("gang", [False, True])
def test_a_gang_finds_room_whatever_the_fleet_has(plain: GeneratedFleet, name: str, *, gang: bool) -> None:
    made = propose(attempt_on(MIXED[name](plain, gang=gang)))
    assert isinstance(made, Plan)
    assert len(made.statement.nominated) == GANG.tasks


def test_each_fleet_has_what_its_name_says(plain: GeneratedFleet) -> None:
    waiting = plain.snapshot.tasks.podgroup == plain.gang
    after = {name: make(plain, gang=True).snapshot for name, make in MIXED.items()}
    assert len(np.unique(after["shapes"].tasks.shape[waiting])) == 3
    assert len(np.unique(after["roles"].tasks.role[waiting])) == 3
    assert len(np.unique(after["subgroups"].tasks.subgroup[waiting])) == 8
    assert len(np.unique(after["subgroups"].subgroups.podgroup)) > 8
    both = after["subgroup_shapes"].tasks
    assert (len(np.unique(both.subgroup[waiting])), len(np.unique(both.shape[waiting]))) == (8, 3)
    cards = after["cards"]
    assert (cards.shapes.on_card[cards.tasks.shape[waiting]] > 0).all()
    assert (cards.card_room.idle >= 0).all()
    assert (cards.tasks.card != NONE).any()
    repelled = after["affinity"]
    assert (repelled.shapes.constraint[repelled.tasks.shape[waiting]] == 1).all()
    assert (repelled.tasks.label_set > 0).any()


def test_podgroups_that_run_ask_for_other_amounts_of_memory_and_the_gang_does_not(plain: GeneratedFleet) -> None:
    before, after = plain.snapshot, with_amounts(plain, 500).snapshot
    asked, rows = after.shapes.request[after.tasks.shape], before.tasks.podgroup == plain.gang
    less = before.shapes.request[before.tasks.shape] - asked
    assert 200 < len(after.shapes) <= 500
    assert (less >= 0).all()
    assert not less[rows].any()
    assert np.flatnonzero(less.any(axis=0)).tolist() == [RESOURCES.index("memory")]


def test_what_only_the_fleet_has_leaves_the_gang_as_it_was(plain: GeneratedFleet) -> None:
    waiting = plain.snapshot.tasks.podgroup == plain.gang
    for make in MIXED.values():
        tasks, before = make(plain, gang=False).snapshot.tasks, plain.snapshot.tasks
        for column in ("shape", "role", "subgroup", "card", "label_set"):
            assert (getattr(tasks, column)[waiting] == getattr(before, column)[waiting]).all()
