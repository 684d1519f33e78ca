"""Moves of victims with a required level or anti-affinity: consolidation under profile `kai`."""

from typing import Any

import pytest

from tests.support.small_clusters import REST, named, played, podgroup, world

GPU = "nvidia.com/gpu"
RACKS = {"n0": "r0", "n1": "r0", "n2": "r1", "n3": "r1", "n4": "r2", "n5": "r2"}
NODE = {"cpu": 99, "memory": "99G", GPU: 2}


def group(name: str, places: list[str | None], gpus: int = 1, **more: Any) -> dict[str, Any]:
    said = {"min_available": len(places), "phase": "Running", "created": 1.0, "started": 2.0, **more}
    asked = [{"cpu": 1, "memory": "1G", GPU: gpus}] * len(places)
    return podgroup(name, asked, places, {"labels": {"app": name}}, **said)


def moves(groups: list[dict[str, Any]], nodes: int = 4, **policy: Any) -> tuple[dict[str, str], list[str]]:
    """By task the node that each is promised, and who was evicted."""
    said = {"profile": "kai", "actions": ["consolidation"], "consolidation_max_victims": -1, **policy}
    queues = {"q": {"deserved": {**REST, GPU: "unlimited"}}}
    made = world(dict.fromkeys(list(RACKS)[:nodes], NODE), queues, groups, now=1000.0, **said)
    for node in made["nodes"]:
        node["labels"] = {"rack": RACKS[node["name"]]}
    (cycle,) = played(made | {"topology": {"levels": ["rack"], "labels": {"rack": "rack"}}})
    places = [one["node"] for one in cycle["nominations"]]
    return dict(zip(named(cycle["nominations"]), places, strict=True)), sorted(named(cycle["evictions"]))


RACK: dict[str, Any] = {"topology": {"required": "rack"}}
LASTING: dict[str, Any] = {"preemptible": False}


def apart(podgroup: dict[str, Any], *apps: str) -> dict[str, Any]:
    for task in podgroup["tasks"]:
        task["pod_anti_affinity"] = [{"topology_key": "rack", "match_labels": {"app": app}} for app in apps]
    return podgroup


def test_a_lone_task_with_a_required_level_moves_into_another_domain() -> None:
    groups = [group("hard", ["n1"], **LASTING), group("soft", ["n2"], **RACK), group("new", [None, None], 2, **RACK)]
    promised, evicted = moves(groups)
    assert evicted == ["soft-0"]
    assert promised["soft-0"] in ("n0", "n1")
    assert {promised["new-0"], promised["new-1"]} == {"n2", "n3"}


def test_a_gang_with_a_required_level_moves_into_one_domain() -> None:
    groups = [
        group("hard", ["n1", "n5"], **LASTING),
        group("soft", ["n2", "n3"], **RACK),
        group("new", [None, None], 2, **RACK),
    ]
    promised, evicted = moves(groups, nodes=6)
    assert evicted == ["soft-0", "soft-1"]
    assert {RACKS[promised["soft-0"]], RACKS[promised["soft-1"]]} in ({"r0"}, {"r2"})


def test_a_part_of_it_moves_only_beside_the_rest() -> None:
    """One of its tasks cannot be moved, so the other may not leave the rack, however much room there is elsewhere."""
    soft = group("soft", ["n2", "n3"], **RACK)
    soft["tasks"][1]["gone_when_evicted"] = True
    new = group("new", [None], 2)
    new["tasks"][0]["node_selector"] = {"rack": "r1"}
    assert moves([soft, new]) == ({"soft-0": "n3", "new-0": "n2"}, ["soft-0"])
    assert moves([soft, new, group("hard", ["n3"], **LASTING)]) == ({}, [])


def test_subgroups_with_levels_of_their_own_move_each_into_one_domain() -> None:
    parts = [{"name": name, "min_available": 2, "topology": {"required": "rack"}} for name in ("a", "b")]
    soft = group("soft", ["n2", "n3", "n4", "n5"], subgroups=parts)
    for task, part in zip(soft["tasks"], "aabb", strict=True):
        task["subgroup"] = part
    groups = [group("hard", ["n1"], **LASTING), soft, group("new", [None, None], 2, **RACK)]
    promised, evicted = moves(groups, nodes=6)
    assert evicted
    for pair in (("soft-0", "soft-1"), ("soft-2", "soft-3")):
        at = {"soft-0": "n2", "soft-1": "n3", "soft-2": "n4", "soft-3": "n5"} | promised
        assert len({RACKS[at[one]] for one in pair}) == 1


def test_a_task_with_anti_affinity_moves_where_it_is_let() -> None:
    groups = [
        group("hard", ["n1"], **LASTING),
        group("other", ["n5"], **LASTING),
        apart(group("soft", ["n2"]), "hard"),
        group("new", [None, None], 2, **RACK),
    ]
    promised, evicted = moves(groups, nodes=6)
    assert evicted == ["soft-0"]
    assert RACKS[promised["soft-0"]] == "r2"


def test_it_stays_where_it_is_let_nowhere_else() -> None:
    groups = [
        group("hard", ["n1"], **LASTING),
        group("other", ["n5"], **LASTING),
        apart(group("soft", ["n2"]), "hard", "other"),
        group("new", [None, None], 2, **RACK),
    ]
    assert moves(groups, nodes=6) == ({}, [])


def test_it_does_not_follow_the_gang_that_it_repels() -> None:
    """Whichever rack the new gang gets, the other one is for the task that it repels."""
    groups = [
        apart(group("soft", ["n2"]), "new"),
        group("hard", ["n1"], **LASTING),
        group("new", [None, None], 2, **RACK),
    ]
    promised, _ = moves(groups)
    assert promised == {} or RACKS[promised["soft-0"]] != RACKS[promised["new-0"]]
    assert promised


def test_what_is_left_of_a_gang_below_its_minimum_does_not_move() -> None:
    left, new = group("left", ["n0"], min_available=2), group("new", [None], 2)
    assert moves([left, group("lasting", ["n1"], **LASTING), new], nodes=2) == ({}, [])
    promised, evicted = moves([left, group("soft", ["n1"]), new], nodes=2)
    assert (evicted, promised) == (["soft-0"], {"soft-0": "n0", "new-0": "n1"})


def test_moves_count_against_what_may_be_evicted_in_a_time() -> None:
    groups = [group("hard", ["n1"], **LASTING), group("soft", ["n2"], **RACK), group("new", [None, None], 2, **RACK)]
    for bounds, evicted in (({"in_window": 1}, ["soft-0"]), ({"in_window": 0}, []), ({"in_window_of_queue": 0}, [])):
        budget = {"evictionbudget": {"arguments": bounds}}
        assert moves(groups, plugins=budget)[1] == evicted


def test_moves_of_a_reclaim_count_too_though_they_take_nothing() -> None:
    groups = [group("b0", ["n0"], queue="b"), group("b1", ["n1"], queue="b"), group("new", [None], 2, queue="a")]
    queues = {name: {"deserved": {**REST, GPU: 2}} for name in "ab"}
    for most in (1, 0):
        policy = {"actions": ["reclaim"], "plugins": {"evictionbudget": {"arguments": {"in_window": most}}}}
        (cycle,) = played(world({"n0": NODE, "n1": NODE}, queues, groups, now=1000.0, profile="kai", **policy))
        assert len(cycle["evictions"]) == most
        assert len({"b0-0", "b1-0"} & set(named(cycle["nominations"]))) == most


def test_no_task_moves_where_tasks_of_two_sizes_have_room_already() -> None:
    new = group("new", [None, None], 2)
    new["tasks"][1]["request"] = {"cpu": 1, "memory": "1G", GPU: 1}
    promised, evicted = moves([group("one", ["n3"], 2), group("two", ["n1", "n2"], 2), new], 6)
    assert evicted == []
    assert sorted(promised) == ["new-0", "new-1"]


@pytest.mark.parametrize("profile", ["default", "volcano", "kai", "koordinator"])
def test_under_every_profile_consolidation_evicts_only_what_has_another_place(profile: str) -> None:
    """Where a profile names no solver for it, it once took the one that takes gangs, and no law was asked.

    A task of two cores runs on one node of four, another task on the other, and one of four waits.
    """
    nodes, queues = {"n0": {"cpu": 4}, "n1": {"cpu": 4}}, {name: {"deserved": {"cpu": 8}} for name in ("new", "old")}
    two, new = podgroup("two", [{"cpu": 2}], "n0", queue="old"), podgroup("new", [{"cpu": 4}], queue="new", priority=1)
    policy = {"profile": profile, "actions": ["allocate", "consolidation"]}
    for other, evicted in ((3, 0), (2, 1)):
        groups = [two, podgroup("other", [{"cpu": other}], "n1", queue="old"), new]
        (cycle,) = played(world(nodes, queues, groups, **policy))
        victims = set(named(cycle["evictions"]))
        assert len(victims) == evicted
        assert set(named(cycle["nominations"])) == (victims | {"new-0"} if victims else set())
