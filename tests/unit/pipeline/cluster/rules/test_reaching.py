"""Which tasks make up a minimum where a gang can spare some of its subgroups: none of these starts in part."""

from itertools import combinations

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.cluster.rules.minimum import has_minimum, leaves_with
from pipeline.cluster.rules.reaching import in_whole_subgroups, minimum_of
from tests.support.builders import Gang, Task, cluster


def made_up(sizes: list[int], minima: list[int], least: int, needed: int, alone: int = 0) -> tuple[list[int], int]:
    """How many tasks of each subgroup, and last of none, make up the minimum; and how many it lacks."""
    tasks = [Task(cpu=1, subgroup=part) for part, many in enumerate(sizes) for _ in range(many)] + [Task(cpu=1)] * alone
    parts = [(NONE, minimum, NONE) for minimum in minima]
    state = cluster([{"cpu": 1}], [Gang(tasks, least, subgroups=parts, min_subgroups=needed)])
    rows = np.arange(len(tasks))
    chosen, lacking = minimum_of(state, 0, rows)
    of = state.tasks.subgroup[rows[chosen]]
    return [int((of == part).sum()) for part in (*range(len(sizes)), NONE)], lacking


@pytest.mark.parametrize(
    ("sizes", "minima", "least", "needed", "alone", "taken"),
    [
        (
            [3, 3, 2],
            [3, 2, 2],
            7,
            1,
            0,
            [3, 2, 2, 0],
        ),  # with a surplus task of the second the third would start in part
        ([3, 3, 2], [3, 2, 2], 3, 1, 0, [0, 3, 0, 0]),  # a surplus task is enough
        ([2, 2], [2, 2], 3, 1, 1, [2, 0, 1]),  # so is one that is in no subgroup
        ([2, 2], [2, 2], 3, 2, 0, [2, 2, 0]),  # both are needed
        ([3, 1, 2], [2, 2, 2], 4, 1, 0, [2, 0, 2, 0]),  # the second can never be whole
    ],
)
def test_a_subgroup_that_can_be_spared_is_taken_whole_or_not_at_all(
    sizes: list[int], minima: list[int], least: int, needed: int, alone: int, taken: list[int]
) -> None:
    assert made_up(sizes, minima, least, needed, alone) == (taken, 0)


def test_a_minimum_that_only_a_part_of_a_subgroup_would_reach_lacks_tasks() -> None:
    assert made_up([2, 2], [2, 3], 3, 1) == ([2, 0, 0], 1)


def test_the_subgroups_are_those_with_which_the_minimum_takes_fewest_tasks() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        many = int(rng.integers(1, 5))
        minima = rng.integers(1, 5, many).tolist()
        sizes = [minimum + int(rng.integers(0, 2)) for minimum in minima]
        least, needed = int(rng.integers(1, sum(sizes) + 1)), int(rng.integers(1, many + 1))
        taken, lacking = made_up(sizes, minima, least, needed)
        sets = [parts for some in range(needed, many + 1) for parts in combinations(range(many), some)]
        totals = [
            max(least, sum(minima[part] for part in parts))
            for parts in sets
            if sum(sizes[part] for part in parts) >= least
        ]
        assert not any(0 < had < minimum for had, minimum in zip(taken, minima, strict=False))
        assert (sum(taken), lacking) == (min(totals), 0)


def test_a_leaf_in_a_subgroup_that_can_do_without_it_is_taken_whole_as_well() -> None:
    """An inner subgroup needs none of its leaves; the gang needs three tasks, and one leaf has three."""
    tree = [(NONE, 0, 0), (0, 2, NONE), (0, 3, NONE)]
    tasks = [Task(cpu=1, subgroup=leaf) for leaf in (1, 1, 2, 2, 2)]
    state = cluster([{"cpu": 1}], [Gang(tasks, 3, subgroups=tree, min_subgroups=1)])
    chosen, lacking = minimum_of(state, 0, np.arange(5))
    assert (chosen.tolist(), lacking) == ([False, False, True, True, True], 0)


def test_of_many_subgroups_the_first_ones_are_taken_that_are_enough() -> None:
    taken, lacking = made_up([2] * 20, [2] * 20, 31, 1)
    assert (taken, lacking) == ([2] * 16 + [0] * 5, 0)


def test_subgroups_of_podgroups_before_it_change_nothing() -> None:
    other = Gang([Task(cpu=1, subgroup=part) for part in range(3)], 3, subgroups=[(NONE, 1, NONE)] * 3)
    tasks = [Task(cpu=1, subgroup=0), Task(cpu=1)]
    state = cluster([{"cpu": 1}], [other, Gang(tasks, 2, subgroups=[(NONE, 1, NONE)])])
    chosen, lacking = minimum_of(state, 1, np.array([3, 4]))
    assert (chosen.tolist(), lacking) == ([True, True], 0)


def test_a_task_is_in_whole_subgroups_where_each_around_it_has_its_minimum() -> None:
    rng = np.random.default_rng(2)
    tree = [(NONE, 0, 1), (0, 2, NONE), (0, 1, NONE), (NONE, 2, NONE)]
    around = {1: (0, 1), 2: (0, 2), 3: (3,), NONE: ()}
    for _ in range(60):
        leaves = rng.choice([1, 2, 3, NONE], 7).tolist()
        tasks = [Task(cpu=1, subgroup=leaf, node=int(rng.integers(-1, 1))) for leaf in leaves]
        state = cluster([{"cpu": 9}], [Gang(tasks, 1, subgroups=tree, min_subgroups=1)])
        placed = np.array([row for row, task in enumerate(tasks) if task.node == NONE and rng.random() < 0.7], np.int64)
        found = in_whole_subgroups(state, 0, placed, leaves_with(state, 0, placed))
        expected = [all(has_minimum(state, 0, part, placed) for part in around[leaves[row]]) for row in placed.tolist()]
        assert found.tolist() == expected
