"""How a cluster file chooses between filling nodes and spreading over them."""

import pytest

from actors.configuration.profiles import load_profile
from tests.support.clusters import changed
from tests.support.simulating import simulate


def test_placement_is_refused_where_the_profile_cannot_choose() -> None:
    told = "policy.placement: expected a profile with the plugin nodeplacement, found 'spread'"
    assert simulate(changed("policy.placement", "spread"))["error"] == told


@pytest.mark.parametrize("strategy", ["binpack", "spread"])
def test_placement_is_the_strategy_of_the_plugin_that_places_tasks(strategy: str) -> None:
    settings = {one.name: one for one in load_profile("kai", {"placement": strategy}).plugins}
    assert settings["nodeplacement"].argument("strategy", "") == strategy


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"strategy": "binpack"}, ["n0", "n0"]),
        ({"strategy": "spread"}, ["n1", "n1"]),
        ({"strategy": "binpack", "cpu_strategy": "spread"}, ["n0", "n1"]),
        ({"strategy": "spread", "cpu_strategy": "binpack"}, ["n1", "n0"]),
    ],
)
def test_tasks_without_devices_may_be_placed_in_another_way(arguments: dict[str, str], where: list[str]) -> None:
    """Two tasks wait, one for a device and one for cpu; on one of two nodes something runs already."""
    asks = {"there": {"cpu": 1, "gpu": 1}, "device": {"gpu": 1}, "cpu": {"cpu": 1}}
    tasks = {name: {"name": name, "request": request} for name, request in asks.items()}
    tasks["there"] |= {"status": "Running", "node": "n0"}
    result = simulate(
        {
            "version": 1,
            "policy": {"profile": "kai", "plugins": {"nodeplacement": {"arguments": arguments}}},
            "nodes": [{"name": f"n{at}", "allocatable": {"cpu": 8, "gpu": 8, "pods": 9}} for at in range(2)],
            "queues": [{"name": "q"}],
            "podgroups": [{"name": name, "queue": "q", "tasks": [task]} for name, task in tasks.items()],
        }
    )
    assert [result["final"][f"default/{name}"]["node"] for name in ("device", "cpu")] == where
