"""Which resources binpack counts."""

import numpy as np

from pipeline.cluster.counted import node_scores
from pipeline.plugins.binpack import Binpack
from pipeline.plugins.plugin import Context
from pipeline.policy import PluginSetting
from tests.support.builders import cluster, gang
from tests.support.task_centric import policy


def scores(**arguments: object) -> list[float]:
    """Of two nodes, one of which is half full in cpu and the other in gpus, for a task that wants both."""
    state = cluster([{"cpu": 4, "gpu": 4}] * 2, [gang(1, 0, cpu=2), gang(1, 1, gpu=2), gang(1, cpu=1, gpu=1)])
    used = state.nodes.allocatable - state.room.idle
    shape = int(state.tasks.shape[2])
    made = Binpack(Context(state, policy(), 0.0), PluginSetting("binpack", arguments=tuple(arguments.items())))
    request, there = state.shapes.request[shape], state.nodes.allocatable
    return node_scores.scores(made.score_terms(shape), request, used, there, np.arange(2)).tolist()


def test_resources_that_are_not_listed_count_one_if_nothing_is_listed_else_nothing() -> None:
    assert scores() == [50.0, 50.0]
    assert scores(resources={}) == [75.0, 25.0]
    assert scores(resources={"gpu": 3}) == [37.5, 62.5]
