"""Decisions that a snapshot does not contain yet are folded in anew unless those before them are still the same."""

from dataclasses import replace

import numpy as np

from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.overlay import Outstanding, Overlay, not_in, outstanding
from pipeline.decision.statement import statement
from tests.support.builders import cluster, gang

STATE = cluster([{"cpu": 4}], [gang(1, cpu=1), gang(1, cpu=1), gang(1, cpu=1)])


def binds(task: int, sequence: int, snapshot: Snapshot = STATE) -> Outstanding:
    made = statement("allocate", bound=np.array([task]), bound_node=np.array([0]))
    return outstanding(made, snapshot, sequence, 0.0)


def bound(snapshot: Snapshot) -> list[int]:
    return np.flatnonzero(snapshot.tasks.node != NONE).tolist()


FIRST, SECOND, OTHER = binds(0, 1), binds(1, 2), binds(2, 1)


def test_a_further_decision_is_folded_onto_those_before_it() -> None:
    overlay = Overlay()
    assert bound(overlay.of(STATE, ())) == []
    assert bound(overlay.of(STATE, (FIRST,))) == [0]
    assert bound(overlay.of(STATE, (FIRST, SECOND))) == [0, 1]


def test_a_decision_that_is_not_outstanding_any_more_leaves_nothing() -> None:
    overlay = Overlay()
    overlay.of(STATE, (FIRST, SECOND))
    assert bound(overlay.of(STATE, (FIRST,))) == [0]
    assert bound(overlay.of(STATE, (OTHER,))) == [2]
    assert bound(overlay.of(STATE, (OTHER, SECOND))) == [1, 2]


def test_on_another_snapshot_all_are_folded_in_but_those_that_it_contains() -> None:
    overlay = Overlay()
    overlay.of(STATE, (FIRST,))
    assert bound(overlay.of(replace(STATE, decided=1), (FIRST, SECOND))) == [1]
    assert not_in((FIRST, SECOND), replace(STATE, decided=1)) == (SECOND,)


def test_a_snapshot_without_outstanding_decisions_keeps_its_revision_and_no_other_has_it() -> None:
    overlay, state = Overlay(), replace(STATE, revision=7)
    assert overlay.of(state, ()) is state
    revisions = [overlay.of(state, decisions).revision for decisions in ((FIRST,), (FIRST, SECOND))]
    assert len({7, *revisions}) == 3
    assert max(revisions) < 0
