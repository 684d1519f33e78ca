"""The network from manifests: layers of Koordinator, tiers of Volcano; and the status that follows."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from actors.cli.commands import app
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.imports.kubernetes.manifests import cluster_of, network_of
from actors.imports.kubernetes.network.topology_status import detail_status
from tests.support.manifests import manifest, node, pod
from tests.support.simulating import simulate

EXAMPLES = Path(__file__).parents[1] / "manifests" / "job_scheduling"
SPINE, BLOCK = "network.topology.nvidia.com/spine", "network.topology.nvidia.com/block"
LAYERS = (("SpineLayer", (SPINE,)), ("BlockLayer", (BLOCK,)))


def nodes(**places: tuple[str, str]) -> dict[str, dict[str, str]]:
    return {name: {SPINE: spine, BLOCK: block} for name, (spine, block) in places.items()}


def written(folder: Path, *objects: Any, name: str = "m.yaml") -> Path:
    (folder / name).write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return folder / name


def test_the_status_is_that_of_the_worked_example() -> None:
    """From "Job Scheduling & Network-Topology Aware", section "Cluster Network Topology"; children are in order."""
    blocks = {"s1": ["b1", "b1", "b2", "b2"], "s2": ["b3", "b3", "b4", "b4"]}
    eight = {
        f"{spine}-{at}": {SPINE: spine, BLOCK: block}
        for spine, inside in blocks.items()
        for at, block in enumerate(inside)
    }
    root, spine = ("ClusterTopologyLayer", ""), ("SpineLayer", "s1")

    def info(layer: tuple[str, str]) -> dict[str, str]:
        return {"topologyLayer": layer[0], "topologyName": layer[1]}

    told = detail_status(LAYERS, eight)
    assert told[0] == {
        "childTopologyLayer": "SpineLayer", "childTopologyNames": ["s1", "s2"], "nodeNum": 8,
        "topologyInfo": info(root),
    }  # fmt: skip
    assert told[1] == {
        "childTopologyLayer": "BlockLayer", "childTopologyNames": ["b1", "b2"], "nodeNum": 4,
        "parentTopologyInfo": info(root), "topologyInfo": info(spine),
    }  # fmt: skip
    assert told[2] == {
        "childTopologyLayer": "NodeTopologyLayer", "nodeNum": 2, "parentTopologyInfo": info(spine),
        "topologyInfo": info(("BlockLayer", "b1")),
    }  # fmt: skip
    assert [each["topologyInfo"]["topologyName"] for each in told] == ["", "s1", "b1", "b2", "s2", "b3", "b4"]


def test_equal_blocks_of_two_spines_stay_two() -> None:
    told = detail_status(LAYERS, nodes(a=("s1", "b"), b=("s2", "b"), c=("s2", "b")))
    blocks = [each for each in told if each["topologyInfo"]["topologyLayer"] == "BlockLayer"]
    assert [(each["parentTopologyInfo"]["topologyName"], each["nodeNum"]) for each in blocks] == [("s1", 1), ("s2", 2)]


def test_a_node_without_a_block_is_one_of_its_own_and_without_a_spine_in_none() -> None:
    labels = {"a": {SPINE: "s1"}, "b": {BLOCK: "b1"}, "c": {}, "d": {SPINE: "s1", BLOCK: "b1"}}
    told = detail_status(LAYERS, labels)
    names = [(each["topologyInfo"]["topologyName"], each["nodeNum"]) for each in told]
    assert names == [("", 2), ("s1", 2), ("a", 1), ("b1", 1)]


def test_the_command_writes_the_status_beside_the_spec(tmp_path: Path) -> None:
    file = written(
        tmp_path, *(node(name, labels, cpu=4) for name, labels in nodes(a=("s1", "b"), b=("s2", "b")).items())
    )
    paths = [str(EXAMPLES / "network.yaml"), str(file)]
    out = CliRunner().invoke(app, ["import", "k8s", *paths, "--topology-status"])
    assert out.exit_code == 0
    told = yaml.safe_load(out.stdout)
    assert told == network_of([Path(path) for path in paths])
    assert (told["kind"], len(told["status"]["detailStatus"])) == ("ClusterNetworkTopology", 5)


def test_layers_are_levels_whatever_their_order() -> None:
    document = cluster_of([EXAMPLES / "network.yaml", EXAMPLES / "gang_group.yaml"]).plain
    assert document["topology"] == {
        "levels": ["SpineLayer", "BlockLayer"], "labels": {"SpineLayer": SPINE, "BlockLayer": BLOCK},
    }  # fmt: skip
    master, worker = document["podgroups"]
    assert master["topology"] == {"preferred": "BlockLayer"}
    assert worker["topology"] == {"required": "SpineLayer"}
    assert master["gang_group"] == worker["gang_group"] == ["default/master", "default/worker"]


def test_a_layer_that_is_not_there_is_refused(tmp_path: Path) -> None:
    text = (EXAMPLES / "gang_group.yaml").read_text(encoding="utf-8").replace('"SpineLayer"', '"spineLayer"')
    (tmp_path / "gang.yaml").write_text(text, encoding="utf-8")
    expected = "expected one of SpineLayer, BlockLayer, NodeTopologyLayer, found 'spineLayer'"
    with pytest.raises(ClusterFileRefused, match=rf"gang\.yaml, line \d+: PodGroup default/master: .*: {expected}"):
        cluster_of([EXAMPLES / "network.yaml", tmp_path])


def test_a_node_without_labels_is_usable_where_no_layer_is_asked_for(tmp_path: Path) -> None:
    def group(name: str, annotations: dict[str, str]) -> list[dict[str, Any]]:
        about = {"namespace": "default", "annotations": annotations}
        marks = {"labels": {"pod-group.scheduling.sigs.k8s.io": name}}
        return [
            manifest("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", name, {"minMember": 1}, about=about),
            pod(f"{name}-0", about=marks, asks={"cpu": 4}, schedulerName="koord-scheduler"),
        ]

    gather = '{"gatherStrategy": [{"layer": "BlockLayer", "strategy": "MustGather"}]}'
    key = "gang.scheduling.koordinator.sh/network-topology-spec"
    file = written(tmp_path, node("bare", cpu=4), *group("close", {key: gather}), *group("anywhere", {}))
    document = cluster_of([EXAMPLES / "network.yaml", file]).plain
    bound = simulate(document, 1, "default")["cycles"][0]["bindings"]
    assert bound == [{"task": "default/anywhere-0", "node": "bare"}]


def test_the_node_itself_can_be_the_layer(tmp_path: Path) -> None:
    text = (EXAMPLES / "gang_group.yaml").read_text(encoding="utf-8").replace('"SpineLayer"', '"NodeTopologyLayer"')
    (tmp_path / "gang.yaml").write_text(text, encoding="utf-8")
    nodes_file = written(tmp_path, node("a", {SPINE: "s", BLOCK: "b"}, cpu=4), name="nodes.yaml")
    document = cluster_of([EXAMPLES / "network.yaml", tmp_path / "gang.yaml", nodes_file]).plain
    assert document["topology"]["levels"] == ["SpineLayer", "BlockLayer", "NodeTopologyLayer"]
    assert document["nodes"][0]["labels"]["kubernetes.io/hostname"] == "a"


def hypernode(name: str, tier: int, selector: dict[str, Any], kind: str = "Node") -> dict[str, Any]:
    spec = {"tier": tier, "members": [{"type": kind, "selector": selector}]}
    return manifest("topology.volcano.sh/v1alpha1", "HyperNode", name, spec)


def test_members_of_a_hypernode_are_found_by_name_pattern_and_label(tmp_path: Path) -> None:
    file = written(
        tmp_path, node("n1", cpu=4), node("n2", cpu=4), node("m1", {"rack": "r"}, cpu=4),
        hypernode("a", 1, {"regexMatch": {"pattern": "^n[0-9]+$"}}),
        hypernode("b", 1, {"labelMatch": {"matchLabels": {"rack": "r"}}}),
        hypernode("top", 2, {"regexMatch": {"pattern": "^[ab]$"}}, "HyperNode"),
    )  # fmt: skip
    document, _, found = cluster_of([file])
    inside = {each["name"]: (each.get("parent"), each.get("nodes")) for each in document["topology"]["domains"]}
    assert inside == {"top": (None, None), "a": ("top", ["n1", "n2"]), "b": ("top", ["m1"])}
    assert not found


def test_a_pattern_that_could_be_matched_for_ever_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, node("n", cpu=4), hypernode("a", 1, {"regexMatch": {"pattern": "^(n+)+$"}}))
    with pytest.raises(
        ClusterFileRefused, match=r"spec\.members\[0\]\.selector\.regexMatch\.pattern: expected at most"
    ):
        cluster_of([file])
