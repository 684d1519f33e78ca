"""Why a podgroup is not admitted."""

from typing import Any

import pytest

from pipeline.decision.obstacle import Cause
from tests.support.simulating import simulate
from tests.support.small_clusters import podgroup, world


@pytest.mark.parametrize(
    ("queue", "plugins", "obstacle"),
    [
        ({"state": "Closed"}, {}, {"cause": Cause.CLOSED.value, "what": "Closed"}),
        (
            {"capability": {"cpu": 5}}, {},
            {"cause": Cause.ADMISSION.value, "plugin": "capacity", "what": "cpu", "wanted": 3.0, "found": 1.0},
        ),
        (
            {}, {"overcommit": {"enabled": {"*": True}}, "capacity": {"enabled": {"*": False}}},
            {"cause": Cause.ADMISSION.value, "plugin": "overcommit"},
        ),
    ],
)  # fmt: skip
def test_the_queue_or_the_plugin_that_rejects_it_is_told(
    queue: dict[str, Any], plugins: dict[str, Any], obstacle: dict[str, Any]
) -> None:
    """Of five cores four are held, and it wants three."""
    held = podgroup("held", [{"cpu": 4}], "n", phase="Running", min_resources={"cpu": 4})
    asks = podgroup("asks", [{"cpu": 3}], phase="Pending", min_resources={"cpu": 3})
    document = world({"n": {"cpu": 5}}, {"q": queue}, [held, asks], actions=["enqueue", "allocate"], plugins=plugins)
    (found,) = simulate(document, explain=True)["explain"]["podgroups"]["default/asks"]["obstacles"]
    assert {name: said for name, said in found.items() if name not in ("queue", "podgroup")} == obstacle
