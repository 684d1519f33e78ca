"""Obstacles of podgroups that are not searched for, from cycle to cycle."""

from dataclasses import replace

from actors.cli.simulate import open_case
from actors.search.held_back import HeldBack, held_back_of
from pipeline.cycle import cycle
from tests.support.gathering import TWO_BY_TWO, cluster_file, waiting


def _held(lacking: dict[str, int], before: HeldBack) -> HeldBack:
    """After a cycle in which the podgroups b and c, for which a waits, have one task and these minima."""
    listed = [f"default/{name}" for name in "abc"]
    others = [waiting(name, [1], gang_group=listed) | {"min_available": least} for name, least in lacking.items()]
    case = open_case(cluster_file(TWO_BY_TWO, 1, [waiting("a", [9], gang_group=listed), *others]))
    done = cycle(case.snapshot, case.policy, case.now)
    return held_back_of(done, case.policy, case.now, before, 1)


def test_what_another_of_the_gang_group_lacks_is_worked_out_again_once_it_is_another_one() -> None:
    first = _held({"b": 2, "c": 1}, HeldBack(0, {}))
    second = _held({"b": 1, "c": 2}, first)
    (b,), (c,) = first.by_row[0][1], second.by_row[0][1]
    assert (b.podgroup, c.podgroup) == (1, 2)


def test_it_is_kept_while_nothing_changes() -> None:
    first = _held({"b": 2, "c": 1}, HeldBack(0, {}))
    kept = replace(first, by_row={row: (why, ()) for row, (why, _) in first.by_row.items()})
    assert _held({"b": 2, "c": 1}, kept).by_row == kept.by_row
