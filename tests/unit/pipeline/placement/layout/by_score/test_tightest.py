"""Packing by domains: the tightest that holds a podgroup, and the emptiest first where none does."""

from dataclasses import replace

import numpy as np
import pytest

from actors.configuration.profiles import load_profile
from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.layout.by_score.gang_allocation import allocate_by_score
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from tests.support.placing import BLOCK, RACK, Work, placed

KAI = load_profile("kai")


def put(state: Snapshot, podgroup: int = 0, limit: int | None = None) -> list[int] | None:
    """The nodes of the podgroup's tasks in the order of its tasks."""
    made = allocate_by_score(Host(Context(state, KAI, 0.0)), (podgroup,), "allocate", surplus_limit=limit)
    if made is None:
        return None
    tasks, nodes = np.append(made.bound, made.nominated), np.append(made.bound_node, made.nominated_node)
    return [int(node) for node in nodes[np.argsort(tasks)]]


def two_blocks(work: list[Work], level: dict[str, int]) -> Snapshot:
    """Two blocks of two racks of two nodes with one core each."""
    groups = [{"min_available": sum(one.group == at for one in work)} for at in range(1 + work[-1].group)]
    return placed([1] * 8, work, racks=(2, 2, 2, 2), groups=[groups[0] | level, *groups[1:]])


def test_the_tightest_rack_of_the_tightest_block_is_taken() -> None:
    """The second block has less room than the first, so its rack goes first though another rack is tighter."""
    work = [Work(0), Work(1, node=0), Work(1, node=4), Work(1, node=5)]
    assert put(two_blocks(work, {"preferred_level": RACK})) == [6]


def test_racks_fill_the_emptiest_first_where_none_holds_the_gang() -> None:
    work = [*[Work(0)] * 3, Work(1, node=6)]
    assert put(two_blocks(work, {"preferred_level": RACK, "required_level": BLOCK})) == [4, 5, 7]


def test_of_racks_that_are_as_empty_the_later_fills_first() -> None:
    assert put(two_blocks([Work(0)] * 3, {"preferred_level": RACK, "required_level": BLOCK})) == [2, 3, 0]


def test_a_required_level_alone_asks_for_no_closer_place_within_it() -> None:
    """Block 1 is the tighter one; within it the nodes go in their order, whatever the racks."""
    work = [*[Work(0)] * 2, Work(1, node=6)]
    assert put(two_blocks(work, {"required_level": BLOCK})) == [4, 5]


def test_a_required_level_that_no_domain_can_keep_places_nothing() -> None:
    assert put(two_blocks([Work(0)] * 5, {"required_level": BLOCK})) is None


def test_where_the_first_tasks_fit_nowhere_the_next_make_up_the_minimum() -> None:
    """Without a level they did, and where one domain held all nodes."""
    work = [Work(0, cpu=2), Work(0), Work(1, node=6)]
    for level in ({"required_level": RACK}, {"preferred_level": RACK}, {}):
        got = put(two_blocks(work, {**level, "min_available": 1}), limit=0)
        assert got is not None
        assert len(got) == 1


def test_a_domain_that_holds_the_first_tasks_goes_before_a_tighter_one_for_the_next() -> None:
    work = [Work(0, cpu=2), Work(0), Work(1, node=2)]
    state = placed([1, 1, 1, 1, 2, 1], work, racks=(2, 2, 2), groups=[{"min_available": 1, "required_level": RACK}, {}])
    assert put(state, limit=0) == [4]


def test_who_runs_somewhere_grows_from_there() -> None:
    work = [Work(0, node=4), Work(0), Work(0)]
    state = two_blocks(work, {"preferred_level": RACK, "min_available": 1})
    assert put(state, limit=1) == [5]


@pytest.mark.parametrize("level", ["required_level", "preferred_level"])
def test_what_a_subgroup_gets_beyond_its_minimum_lies_in_the_domain_of_its_minimum(level: str) -> None:
    """The first rack holds the minimum, one task; the two others would fit the second rack alone."""
    work = [*[Work(0, subgroup=0)] * 3, Work(1, node=0)]
    state = placed([1] * 4, work, racks=(2, 2), groups=[{"min_available": 1}, {}], subgroups=[(0, NONE, 1, NONE)])
    subgroups = replace(state.subgroups, **{level: frozen([RACK], np.int32)})
    found = put(replace(state, subgroups=subgroups))
    assert found == ([1] if level == "required_level" else [1, 2, 3])
