"""Names travel once."""

import numpy as np

from actors.columns.name_directory import Additions, Directory
from pipeline.cluster.arrays import NONE

FIRST = Additions(3, NONE, 0, ("x/t0", "x/t1"), 0, ("x/g",), ("n0",), ("q",), ("", "r0"))


def test_rows_are_called_what_was_told() -> None:
    directory = Directory()
    assert directory.take(FIRST)
    assert directory.tasks([1, 0]) == ["x/t1", "x/t0"]
    assert (directory.podgroups([0]), directory.nodes([0]), directory.queues([0])) == (["x/g"], ["n0"], ["q"])
    assert directory.domains([1]) == ["r0"]


def test_what_is_appended_follows_what_is_known() -> None:
    directory = Directory()
    directory.take(FIRST)
    assert directory.take(Additions(3, 3, 2, ("x/t2",), 1, ()))
    assert directory.tasks([2]) == ["x/t2"]


def test_a_gap_or_another_epoch_asks_for_all_names() -> None:
    directory = Directory()
    directory.take(FIRST)
    assert not directory.take(Additions(3, 3, 3, ("x/t3",), 1, ()))
    assert not directory.take(Additions(4, 4, 2, ("x/t2",), 1, ()))
    assert not Directory().take(Additions(3, 3, 2, ("x/t2",), 1, ()))


def test_all_names_again_begin_anew() -> None:
    directory = Directory()
    directory.take(FIRST)
    assert directory.take(Additions(4, NONE, 0, ("x/t9",), 0, (), ("n9",)))
    assert (directory.known, directory.epoch, directory.nodes([0])) == ((1, 0), 4, ["n9"])


def test_a_name_means_its_newest_row() -> None:
    directory = Directory()
    directory.take(FIRST)
    directory.take(Additions(3, 3, 2, ("x/t0",), 1, ()))
    assert np.array_equal(directory.task_rows(["x/t0", "x/t1", "nobody"]), [2, 1, NONE])


def test_nodes_in_another_order_leave_tasks_and_podgroups_as_they_were_called() -> None:
    directory = Directory()
    directory.take(FIRST)
    assert directory.take(Additions(4, 3, 2, ("x/t2",), 1, (), ("m9", "n0"), ("q",), ("", "r0")))
    assert (directory.epoch, directory.tasks([0, 2]), directory.nodes([1])) == (4, ["x/t0", "x/t2"], ["n0"])
    assert not directory.take(Additions(4, 3, 3, (), 1, ()))
