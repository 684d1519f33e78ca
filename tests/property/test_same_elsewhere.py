"""What says nothing of a cluster decides nothing: names, the time of day, units, nodes that no task may use."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.depth import sampled
from tests.support.simulating import simulate
from tests.support.strategies import GPU, documents

Document = dict[str, Any]
PROFILES = ("default", "volcano", "kai", "koordinator")
#: A power of two, so that no difference of times is rounded.
LATER = 2.0**20
OTHER = "zq"
KINDS, NAMED = ("evictions", "nominations", "bindings"), ("task", "podgroup", "preemptor", "node")


def later(cluster: Document) -> Document:
    """The same cluster at another time."""
    moved = copy.deepcopy(cluster)
    for one in (moved, *moved["queues"], *moved["podgroups"], *_tasks(moved)):
        for key in ("now", "created", "started", "stale_since", "last_checkpoint"):
            if key in one:
                one[key] += LATER
    return moved


def dated(cluster: Document) -> Document:
    """The same cluster with every time of creation written out."""
    stated = copy.deepcopy(cluster)
    for one in (*stated["queues"], *stated["podgroups"], *_tasks(stated)):
        one.setdefault("created", 0.0)
    return stated


def renamed(cluster: Document) -> Document:
    """The same cluster with longer names, which are in the same order."""
    other = copy.deepcopy(cluster)
    podgroups, domains = other["podgroups"], other["topology"]["domains"]
    inner = [subgroup for podgroup in podgroups for subgroup in podgroup.get("subgroups", ())]
    for one in (*other["nodes"], *domains, *other["queues"], *podgroups, *inner, *_tasks(other)):
        for key in ("name", "parent", "queue", "node", "subgroup", "role"):
            if key in one:
                one[key] = OTHER + one[key]
    for domain in domains:
        if "nodes" in domain:
            domain["nodes"] = [OTHER + node for node in domain["nodes"]]
    for podgroup in podgroups:
        if "gang_group" in podgroup:
            podgroup["gang_group"] = [name.replace("/", f"/{OTHER}") for name in podgroup["gang_group"]]
        if "roles" in podgroup:
            podgroup["roles"] = {OTHER + role: least for role, least in podgroup["roles"].items()}
    return other


def twice(cluster: Document) -> Document:
    """The same cluster with twice as much of everything but pods, of which a task always takes one."""
    other = copy.deepcopy(cluster)
    places = [(node, "allocatable") for node in other["nodes"]] + [(task, "request") for task in _tasks(other)]
    places += [(queue, key) for queue in other["queues"] for key in ("deserved", "guarantee", "capability")]
    for one, key in places:
        if key in one:
            one[key] = {
                what: many if what == "pods" or many == "unlimited" else 2 * many for what, many in one[key].items()
            }
    return other


def with_cordoned_nodes(cluster: Document, *, first: bool, gpus: int = 0) -> Document:
    """The same cluster and two cordoned nodes, before or after the others, in a rack of their own."""
    other, letter = copy.deepcopy(cluster), "a" if first else "z"
    names = [f"{letter}{at}" for at in range(2)]
    other["nodes"] += [
        {"name": name, "allocatable": {GPU: gpus, "pods": gpus}, "unschedulable": True} for name in names
    ]
    block, rack = {"name": f"{letter}b", "level": "block"}, {"name": f"{letter}r", "level": "rack"}
    other["topology"]["domains"] += [block, rack | {"parent": block["name"], "nodes": names}]
    return other


def _tasks(cluster: Document) -> list[Document]:
    return [task for podgroup in cluster["podgroups"] for task in podgroup["tasks"]]


def decided(cluster: Document) -> list[list[list[tuple[str, ...]]]]:
    """What each of two cycles does, by kind, without what was put before names."""
    result = simulate(cluster, 2)
    assert result["error"] is None, result["error"]
    return [[sorted(map(_named, cycle[kind])) for kind in KINDS] for cycle in result["cycles"]]


def _named(entry: Document) -> tuple[str, ...]:
    return tuple(str(entry.get(key)).replace(OTHER, "") for key in NAMED)


def _checked(profile: str, others: Sequence[Callable[[Document], Document]], examples: int) -> None:
    @given(documents(profile=profile))
    @settings(max_examples=sampled(examples), deadline=None)
    def check(cluster: Document) -> None:
        cluster = dated(cluster)
        expected = decided(cluster)
        assert [decided(other(cluster)) for other in others] == [expected] * len(others)

    check()


@pytest.mark.parametrize("profile", PROFILES)
def test_names_and_the_time_of_day_decide_nothing(profile: str) -> None:
    _checked(profile, (renamed, later), 6)


@pytest.mark.parametrize("profile", PROFILES)
def test_nodes_that_no_task_may_use_decide_nothing(profile: str) -> None:
    _checked(profile, [partial(with_cordoned_nodes, first=first) for first in (True, False)], 6)


def test_under_kai_nodes_that_are_cordoned_decide_nothing_whatever_they_have() -> None:
    _checked("kai", [partial(with_cordoned_nodes, first=False, gpus=9)], 15)


@pytest.mark.parametrize("profile", ["default", "volcano"])
def test_the_unit_of_resources_decides_nothing(profile: str) -> None:
    """The two others give shares in whole devices, as the systems do that they restate."""
    _checked(profile, (twice,), 6)


def test_an_elastic_podgroup_starts_with_what_fits_whether_one_rack_is_the_cluster_or_not() -> None:
    """Under `kai` a podgroup with a level started with its first tasks or not at all, unless one domain held all."""
    tasks = [{"name": "first", "request": {"cpu": 2}}, {"name": "next", "request": {"cpu": 1}}]
    cluster = {
        "version": 1, "now": 1e4, "policy": {"profile": "kai"}, "queues": [{"name": "q", "deserved": {"cpu": 2}}],
        "nodes": [{"name": name, "allocatable": {"cpu": 1, "pods": 9}} for name in ("n0", "n1")],
        "topology": {
            "levels": ["block", "rack"],
            "domains": [
                {"name": "b0", "level": "block"},
                {"name": "r0", "level": "rack", "parent": "b0", "nodes": ["n0", "n1"]},
            ],
        },
        "podgroups": [{"name": "g", "queue": "q", "topology": {"required": "rack"}, "tasks": tasks}],
    }  # fmt: skip
    started = [[], [], [("default/next", "None", "None", "n0")]]
    assert decided(cluster)[0] == started
    assert decided(with_cordoned_nodes(cluster, first=False))[0] == started
