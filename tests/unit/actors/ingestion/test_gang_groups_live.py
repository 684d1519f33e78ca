"""Gang groups as they come and go live: a podgroup that is named may come later, be there already, or leave."""

from typing import Any

from actors.configuration.profiles import load_profile
from tests.support.assembly import Assembly, gang, rack_cluster

BOTH = {"gang_group": ["default/a", "default/b"]}


def assembly(*podgroups: dict[str, Any]) -> Assembly:
    """A fleet of two racks under profile ``koordinator``, where some podgroups are from the start."""
    return Assembly({**rack_cluster(2, 2, 8), "podgroups": list(podgroups)}, policy=load_profile("koordinator"))


def test_one_that_names_another_starts_when_the_other_comes() -> None:
    made = assembly()
    made.submit(gang("a", 2, 4, **BOTH))
    made.turns(3)
    assert made.status("a-0") == "Pending"
    made.submit(gang("b", 1, 4))
    made.turns(4)
    assert {made.status(one) for one in ("a-0", "a-1", "b-0")} == {"Running"}


def test_one_that_is_there_already_is_known_by_a_later_list() -> None:
    made = assembly(gang("b", 1, 4, nodes=["n0"], phase="Running"))
    made.turn()
    made.submit(gang("a", 2, 4, **BOTH))
    made.turns(4)
    assert {made.status(one) for one in ("a-0", "a-1", "b-0")} == {"Running"}


def test_a_full_list_is_taken_though_a_named_podgroup_has_left() -> None:
    made = assembly(gang("b", 1, 4, nodes=["n0"], phase="Running"), gang("a", 2, 4, **BOTH))
    made.turn()
    made.say(list(made.fleet._finish(made.fleet._podgroups["default/b"])))
    made.say(made.fleet.listing("again"))
    made.turn()
    made.submit(gang("c", 1, 4))
    made.turns(4)
    assert made.status("c-0") == "Running"
