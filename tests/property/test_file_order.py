"""What is decided does not depend on the order in which a file lists its things, roles and subgroups included."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.depth import sampled
from tests.support.simulating import simulate
from tests.support.small_clusters import podgroup, world
from tests.support.strategies import documents

PROFILES = ("default", "volcano", "kai", "koordinator")


def shuffled(document: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same cluster, each of its lists in another order."""
    draw, topology = random.Random(seed), document["topology"]

    def mixed(some: list[Any]) -> list[Any]:
        return draw.sample(some, len(some))

    domains = [
        {**domain, "nodes": mixed(domain["nodes"])} if "nodes" in domain else domain for domain in topology["domains"]
    ]
    lists, roles = ("tasks", "subgroups"), "roles"
    podgroups = [
        {
            **one,
            **{key: mixed(one[key]) for key in lists if key in one},
            roles: dict(mixed([*one.get(roles, {}).items()])),
        }
        for one in document["podgroups"]
    ]
    return {
        **document, "nodes": mixed(document["nodes"]), "queues": mixed(document["queues"]),
        "podgroups": mixed(podgroups), "topology": {**topology, "domains": mixed(domains)},
    }  # fmt: skip


def decided(document: dict[str, Any]) -> list[dict[str, list[Any]]]:
    """What each of three cycles does, as sets."""
    result = simulate(document, 3)
    assert result["error"] is None, result["error"]
    kinds = ("evictions", "nominations", "bindings")
    return [
        {kind: sorted(cycle[kind], key=lambda one: str(one["task"])) for kind in kinds} for cycle in result["cycles"]
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_the_order_of_a_file_decides_nothing(profile: str) -> None:
    @given(documents(profile=profile), st.integers(0, 1000))
    @settings(max_examples=sampled(12), deadline=None)
    def check(document: dict[str, Any], seed: int) -> None:
        assert decided(shuffled(document, seed)) == decided(document)

    check()


@pytest.mark.parametrize("profile", PROFILES)
def test_of_equal_nodes_the_first_in_the_network_is_taken_and_not_the_first_by_name(profile: str) -> None:
    lie = {"z": ["n1"], "a": ["n8", "n9"]}
    nodes = {name: {"cpu": 4} for names in lie.values() for name in names}
    group = podgroup("g", [{"cpu": 1}], phase="Inqueue")
    document = world(nodes, {"q": {}}, [group], profile=profile, actions=["allocate"])
    domains = [{"name": rack, "level": "rack", "nodes": names} for rack, names in lie.items()]
    made = decided(document | {"topology": {"levels": ["rack"], "domains": domains}})
    assert made[0]["bindings"] == [{"task": "default/g-0", "node": "n8"}]


def test_of_tasks_that_hold_the_same_the_same_goes_whichever_the_file_says_first() -> None:
    """What is wasted on a preemptor ranks requests; that of equal requests was once the order of first mention."""
    three = podgroup("three", [{"cpu": 2}] * 3, "n", {"card": "c"}, min_available=2)
    for task, size in zip(three["tasks"], ("1", "2", "2"), strict=True):
        task["card_request"] = size
    groups = [podgroup("one", [{"cpu": 2}], "n"), three, podgroup("asks", [{"cpu": 1}], priority=7)]
    document = world({"n": {"cpu": 8}}, {"q": {}}, groups, profile="default")
    document["nodes"][0]["cards"] = [{"name": "c", "capacity": "8"}]
    document["topology"] = {"levels": ["rack"], "domains": []}
    made = [decided(shuffled(document, seed)) for seed in range(12)]
    assert all(one == made[0] for one in made)
    assert len(made[0][0]["evictions"]) == 1


@pytest.mark.parametrize("cards", ["abc", "cba", "bca"])
def test_of_equal_cards_the_first_by_name_is_taken_and_not_the_first_of_the_file(cards: str) -> None:
    document = world({"n": {"cpu": 4}}, {"q": {}}, [podgroup("g", [{"cpu": 1}], of_each={"card_request": "4"})])
    document["nodes"][0]["cards"] = [{"name": name, "capacity": "2" if name == "a" else "8"} for name in cards]
    assert decided(document)[0]["bindings"] == [{"task": "default/g-0", "node": "n", "card": "b"}]


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a")])
def test_of_equal_subgroups_the_first_by_name_start_and_not_the_first_of_the_file(order: tuple[str, ...]) -> None:
    parts = [{"name": name, "min_available": 2} for name in order]
    tasks = [{"name": f"{name}-{at}", "subgroup": name, "request": {"cpu": 1}} for name in order for at in range(2)]
    tree = [
        {"name": "y", "min_subgroups": 2, "children": parts},
        {"name": "x", "min_subgroups": 1, "children": [{"name": "z", "min_available": 0}]},
    ]
    wide = {"name": "wide", "queue": "q", "min_available": 4, "min_subgroups": 2, "subgroups": tree, "tasks": tasks}
    document = world({"n": {"cpu": 4}}, {"q": {}}, [wide])
    bound = [one["task"] for one in decided(document)[0]["bindings"]]
    assert bound == ["default/a-0", "default/a-1", "default/b-0", "default/b-1"]


@pytest.mark.parametrize("order", ["ab", "ba", "b", ""])
def test_tasks_without_an_index_are_neighbours_by_role_in_the_order_of_the_names_of_roles(order: str) -> None:
    tasks = [{"name": f"t-{at}", "role": role, "request": {"cpu": 1}} for at, role in enumerate("bba")]
    group = {
        "name": "g",
        "queue": "q",
        "min_available": 3,
        "roles": {role: {"min": 1} for role in order},
        "tasks": tasks,
    }
    racked = group | {"topology": {"required": "rack"}}
    document = world({"n1": {"cpu": 2}, "n2": {"cpu": 1}}, {"q": {}}, [racked], profile="koordinator")
    document["topology"] = {"levels": ["rack"], "domains": [{"name": "r", "level": "rack", "nodes": ["n1", "n2"]}]}
    assert [one["node"] for one in decided(document)[0]["bindings"]] == ["n1", "n2", "n1"]
