"""Several topologies of Kueue and KAI: one where their domains fit into each other, else the one that most ask for."""

from pathlib import Path

from tests.support.manifests import Object, imported, manifest, node, pod
from tests.support.simulating import simulate


def placed(name: str, **labels: str) -> Object:
    return node(name, labels, cpu="4", pods="110")


def topology(name: str, *levels: str) -> Object:
    return manifest("kai.scheduler/v1alpha1", "Topology", name, {"levels": [{"nodeLabel": level} for level in levels]})


def gang(name: str, of: str, level: str, tasks: int) -> list[Object]:
    spec = {"minMember": tasks, "topologyConstraint": {"topology": of, "requiredTopologyLevel": level}}
    about, marks = {"namespace": "default"}, {"annotations": {"pod-group-name": name}}
    return [
        manifest("scheduling.run.ai/v2alpha2", "PodGroup", name, spec, about=about),
        *(pod(f"{name}-{at}", about=marks, asks={"cpu": "4"}, schedulerName="kai-scheduler") for at in range(tasks)),
    ]


HERE = [placed("a0", block="b0", rack="r0"), placed("a1", block="b0", rack="r1"), placed("a2", block="b1", rack="r0")]
THERE = [placed("z0", zone="z0", row="w0"), placed("z1", zone="z0", row="w0"), placed("z2", zone="z1", row="w0")]


def test_topologies_of_different_nodes_are_one(tmp_path: Path) -> None:
    both = [topology("here", "block", "rack"), topology("there", "zone", "row")]
    wants = [*gang("first", "here", "block", 2), *gang("second", "there", "row", 2)]
    document, findings = imported(tmp_path, *HERE, *THERE, *both, *wants)
    assert findings == []
    levels = document["topology"]["levels"]
    assert sorted(levels) == ["block", "rack", "row", "zone"]
    assert levels.index("block") < levels.index("rack")
    assert levels.index("zone") < levels.index("row")
    bound = {each["task"]: each["node"] for each in simulate(document, 1, "kai")["cycles"][0]["bindings"]}
    assert bound == {
        "default/first-0": "a0", "default/first-1": "a1", "default/second-0": "z0", "default/second-1": "z1",
    }  # fmt: skip


def test_a_level_that_two_topologies_share_stands_once(tmp_path: Path) -> None:
    both = [topology("wide", "block"), topology("narrow", "block", "rack")]
    wants = [*gang("first", "wide", "block", 1), *gang("second", "narrow", "rack", 1)]
    document, findings = imported(tmp_path, *HERE, *both, *wants)
    assert (document["topology"]["levels"], findings) == (["block", "rack"], [])


def test_topologies_whose_domains_cut_each_other_are_not_one_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    places = {"a": ("b0", "p0"), "b": ("b0", "p1"), "c": ("b1", "p0")}
    crossed = [placed(name, block=block, power=power) for name, (block, power) in places.items()]
    both = [topology("net", "block"), topology("feed", "power")]
    wants = [*gang("one", "net", "block", 1), *gang("two", "net", "block", 1), *gang("odd", "feed", "power", 1)]
    document, findings = imported(tmp_path, *crossed, *both, *wants)
    assert document["topology"]["levels"] == ["block"]
    told = "the topology with the level 'power' is not the one of the cluster file"
    assert findings == [
        "Topology feed: a cluster file has one topology, and this one is asked for less",
        f"PodGroup default/odd: spec.topologyConstraint: {told}",
    ]


def test_levels_in_opposite_orders_are_two_topologies(tmp_path: Path) -> None:
    both = [topology("one", "block", "rack"), topology("other", "rack", "block")]
    document, findings = imported(tmp_path, *HERE, *both, *gang("first", "one", "rack", 1))
    assert document["topology"]["levels"] == ["block", "rack"]
    assert findings == ["Topology other: a cluster file has one topology, and this one is asked for less"]
