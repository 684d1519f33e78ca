"""How full tasks would make domains, as the network topology plugin scores them."""

import numpy as np
import pytest

from pipeline.cluster.arrays import NONE
from pipeline.plugins.network_topology import NetworkTopology
from pipeline.plugins.plugin import Context
from pipeline.policy import PluginSetting, Purpose
from tests.support.builders import cluster, gang
from tests.support.editing import with_groups
from tests.support.task_centric import policy


def scores(used: list[dict[str, int]], there: list[dict[str, int]], **arguments: object) -> list[float]:
    """Of domains, for tasks that ask for two cores and two gpus together."""
    state = cluster([{"cpu": 4, "gpu": 4}], [gang(1, cpu=1, gpu=1)])
    request = 2 * state.shapes.request[0]
    names = state.vocabulary.resources
    columns = np.array([[[row.get(name, 0) for name in names] for row in rows] for rows in (used, there)])
    columns *= state.shapes.request[0]  # in units of one core and one gpu
    setting = PluginSetting("network-topology-aware", arguments=tuple(arguments.items()))
    found = NetworkTopology(Context(state, policy(), 0.0), setting).domain_score(request, *columns)
    return [round(one, 6) for one in found.tolist()]


def test_the_domain_that_the_tasks_would_make_the_fullest_scores_best_whatever_its_size() -> None:
    there = [{"cpu": 4, "gpu": 4}, {"cpu": 16, "gpu": 4}]
    assert scores([{"cpu": 1}, {"cpu": 12}], there) == [0.75, 0.875]


def test_a_domain_that_does_not_take_all_of_the_tasks_scores_nothing() -> None:
    assert scores([{"cpu": 3}, {"cpu": 2}, {}], [{"cpu": 4, "gpu": 4}, {"cpu": 4, "gpu": 4}, {"gpu": 4}]) == [0, 1, 0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [0.5, 0.75]),
        ({"resources": {"gpu": 1}}, [0.75, 0.625]),
        ({"resources": {"gpu": 1}, "cpu": 3}, [0.625, 0.6875]),
        ({"cpu": 0}, [0, 0]),
    ],
)
def test_other_resources_than_cpu_and_memory_count_where_they_are_listed(
    arguments: dict[str, object], expected: list[float]
) -> None:
    there = [{"cpu": 4, "gpu": 4}, {"cpu": 4, "gpu": 4}]
    assert scores([{"gpu": 2}, {"cpu": 1}], there, **arguments) == expected


@pytest.mark.parametrize(
    ("required", "preferred", "on", "expected"),
    [
        (False, False, 0, None),
        (True, False, NONE, [1, 2, 3]),
        (True, False, 1, [2]),
        (False, True, NONE, [1, 2, 3, 0]),
        (False, True, 1, [2, 0]),
    ],
)
def test_a_podgroup_keeps_to_where_it_runs_if_it_states_a_level_itself(
    required: bool, preferred: bool, on: int, expected: list[int] | None
) -> None:
    """With it starts another that states none, and runs in the third rack."""
    one, other = gang(2, (on, NONE), cpu=1), gang(2, (2, NONE), cpu=1)
    state = cluster([{"cpu": 4}] * 3, [one, other], racks=(1, 1, 1))
    levels = {"required_level": 0 if required else NONE, "preferred_level": 0 if preferred else NONE}
    state = with_groups(state, 0, **levels)
    plugin = NetworkTopology(Context(state, policy(), 0.0), PluginSetting("network-topology-aware"))
    found = plugin.domains((0, 1), Purpose.ALLOCATE)
    assert (None if found is None else found.tolist()) == expected
