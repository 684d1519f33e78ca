"""A snapshot as bytes, and bytes that are none."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster import checkpoint
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import RUNNING
from pipeline.cluster.updates.events import Changes
from pipeline.cluster.updates.fold import fold
from pipeline.cluster.vocabulary import AntiAffinity, Constraint, Requirement, Taint, Toleration
from pipeline.errors import StateRefused
from tests.support.encoded import encoded
from tests.support.small_states import decided, small_state, task_news


def state() -> Snapshot:
    constraint = Constraint(
        node_selector=(Requirement("zone", "In", ("a", "ü")),),
        node_affinity=((Requirement("gpu", "Exists", ()), Requirement("age", "Gt", ("3",))), ()),
        tolerations=(Toleration("dedicated", "Equal", "ml", ""),),
        anti_affinity=(
            AntiAffinity("kubernetes.io/hostname", (("app", "x"),)),
            AntiAffinity("zone", (), (Requirement("app", "NotIn", ("x", "y")),), ("*",)),
        ),
        namespace=1,
    )
    made = small_state()
    vocabulary = replace(
        made.vocabulary,
        constraints=(Constraint(), constraint),
        taint_sets=((), (Taint("dedicated", "ml", "NoSchedule"),)),
        label_keys=("zone",),
        label_values=(("a", "b"),),
        label_sets=((), (("app", "x"),)),
        namespaces=("default", "other"),
    )
    made = fold(replace(made, vocabulary=vocabulary), Changes(tasks=task_news((0, RUNNING, 1, 4))))
    return fold(made, Changes(decided=decided(7, nominated=[(2, 3, 0)])))


def test_a_snapshot_comes_back_as_it_was() -> None:
    before = state()
    after = checkpoint.decode(encoded(before))
    assert encoded(after) == encoded(before)
    assert after.vocabulary == before.vocabulary
    assert (after.revision, after.epoch, after.decided) == (before.revision, before.epoch, 7)
    assert after.room.future.tolist() == before.room.future.tolist()
    assert after.budgets.covers.shape == before.budgets.covers.shape


def test_decoding_copies_nothing_and_lets_nothing_be_written() -> None:
    data = encoded(state())
    after = checkpoint.decode(data)
    whole = np.frombuffer(data, np.uint8)
    for column in (after.tasks.status, after.nodes.allocatable, after.topology.start):
        assert np.shares_memory(column, whole)
        assert not column.flags.writeable
        assert (column.ctypes.data - whole.ctypes.data) % 64 == 0


def test_a_decoded_snapshot_folds_like_the_one_it_was() -> None:
    news = Changes(tasks=task_news((1, RUNNING, 2, 9)))
    folded = fold(checkpoint.decode(encoded(state())), news)
    assert encoded(folded) == encoded(fold(state(), news))


@pytest.mark.parametrize("cut", [0, 4, 20, 200, -64, -1])
def test_bytes_that_were_cut_off_are_refused(cut: int) -> None:
    with pytest.raises(StateRefused, match="checkpoint: expected"):
        checkpoint.decode(encoded(state())[:cut])


def test_another_schema_is_refused_by_name() -> None:
    data = encoded(state()).replace(checkpoint.SCHEMA.encode(), b"clearway-snapshot-0", 1)
    with pytest.raises(StateRefused, match="expected schema clearway-snapshot-8, found 'clearway-snapshot-0'"):
        checkpoint.decode(data)


@pytest.mark.parametrize(
    ("said", "forged", "complaint"),
    [
        (b'"<i4"', b'"|O8"', "known types"),
        (b'"incarnation"', b'"incarnatiom"', "another set"),
        (b'["tasks","status","|u1",[12]]', b'["tasks","status","|u1",[92]]', "bytes"),
    ],
)
def test_a_header_that_lies_is_refused(said: bytes, forged: bytes, complaint: str) -> None:
    data = encoded(state())
    assert said in data
    with pytest.raises(StateRefused, match=complaint):
        checkpoint.decode(data.replace(said, forged, 1))
