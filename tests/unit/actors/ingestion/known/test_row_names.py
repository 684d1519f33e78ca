"""Names of rows: what readers of older snapshots hold stays as it is."""

import numpy as np
import pytest

from actors.cluster_file.documents import NodeDocument
from actors.columns.names import Names
from actors.columns.node_order import Homes, Reordered, Reordering, order_nodes
from actors.documents.alike import Alike
from actors.ingestion.known.row_names import RowNames
from pipeline.cluster.arrays import NONE
from pipeline.cluster.topology import Topology


def documents(*names: str) -> list[NodeDocument]:
    return [NodeDocument(name=name, allocatable={"cpu": 1}) for name in names]


@pytest.fixture
def known() -> tuple[RowNames, Topology]:
    order, _ = order_nodes(Alike.of(documents("a", "c", "e")), Homes(None))
    names = Names(order.nodes, ("q",), order.domains, ("x/g",), ("x/t",), order.paths)
    return RowNames.of(names), order.topology


def reordered(names: RowNames, topology: Topology, gone: list[int], *coming: str) -> Reordered:
    making = Reordering(names.node_order(topology), Homes(None))
    making.take_out(np.array(gone, np.int64))
    rows = making.put_in(documents(*coming))
    was = [names.row("nodes", name) for name in coming]
    return making.done(rows, [(old, new) for old, new in zip(was, rows.tolist(), strict=True) if old != NONE])


def test_a_node_that_comes_moves_the_rows_behind_it(known: tuple[RowNames, Topology]) -> None:
    before, topology = known
    after = before.with_nodes_reordered(reordered(before, topology, [], "b", "f"))
    assert after.nodes == ["a", "b", "c", "e", "f"]
    assert [after.row("nodes", name) for name in "abcefz"] == [0, 1, 2, 3, 4, NONE]
    assert before.nodes == ["a", "c", "e"]
    assert [before.row("nodes", name) for name in "abcef"] == [0, NONE, 1, 2, NONE]


def test_a_node_that_went_has_no_row_until_it_comes_again(known: tuple[RowNames, Topology]) -> None:
    before, topology = known
    made = reordered(before, topology, [1], "b")
    without = before.with_nodes_reordered(made)
    assert (without.nodes, without.row("nodes", "c")) == (["a", "b", "e"], NONE)
    again = without.with_nodes_reordered(reordered(without, made.order.topology, [], "c"))
    assert [again.row("nodes", name) for name in "abce"] == [0, 1, 2, 3]
    assert (without.row("nodes", "c"), before.row("nodes", "c")) == (NONE, 1)


def test_rows_that_are_appended_are_not_in_a_copy(known: tuple[RowNames, Topology]) -> None:
    names, _ = known
    copy = names.copied()
    names.append(["x/h"], ["x/u", "x/t"])
    assert (names.row("podgroups", "x/h"), names.row("tasks", "x/t")) == (1, 2)
    assert (copy.row("podgroups", "x/h"), copy.row("tasks", "x/t")) == (NONE, 0)


def test_names_survive_a_checkpoint(known: tuple[RowNames, Topology]) -> None:
    names, _ = known
    again = RowNames.of_packable(names.packable())
    assert again.packable() == names.packable()
    assert again.row("queues", "q") == 0
