"""How a cluster file chooses between filling nodes and spreading over them."""

import pytest

from actors.cli.simulate import simulate
from actors.configuration.profiles import load_profile
from tests.support.clusters import changed


def test_placement_is_refused_where_the_profile_cannot_choose() -> None:
    told = "policy.placement: expected a profile with the plugin nodeplacement, found 'spread'"
    assert simulate(changed("policy.placement", "spread"))["error"] == told


@pytest.mark.parametrize("strategy", ["binpack", "spread"])
def test_placement_is_the_strategy_of_the_plugin_that_places_tasks(strategy: str) -> None:
    settings = {one.name: one for one in load_profile("kai", {"placement": strategy}).plugins}
    assert settings["nodeplacement"].argument("strategy", "") == strategy
