"""What nobody reads yet is refused and not ignored."""

from actors.cli.simulate import simulate
from tests.support.clusters import changed


def test_a_profile_that_is_to_come_is_refused_as_a_whole() -> None:
    document = changed("policy.placement", "spread")
    document["policy"]["profile"] = "koordinator"
    assert simulate(document)["error"] == "policy.profile: 'koordinator' is not supported yet"


def test_placement_is_refused_where_the_profile_cannot_choose() -> None:
    told = "policy.placement: expected a profile with the plugin nodeplacement, found 'spread'"
    assert simulate(changed("policy.placement", "spread"))["error"] == told
