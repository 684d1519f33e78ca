"""How full tasks would make domains, as the network topology plugin scores them."""

import numpy as np
import pytest

from pipeline.plugins.network_topology import NetworkTopology
from pipeline.plugins.plugin import Context
from pipeline.policy import PluginSetting
from tests.support.builders import cluster, gang
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
