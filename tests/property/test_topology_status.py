"""``detailStatus`` of nodes with any labels, against plain counting and the tree in which gangs are gathered."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.cli.simulate import open_case
from actors.imports.kubernetes.manifests import cluster_of, network_of
from actors.imports.kubernetes.network.topology_status import detail_status
from tests.support.depth import sampled
from tests.support.manifests import node

SPINE, BLOCK, OTHER = "spine", "block", "block.old"
#: The widest first; a block is named by the first of two labels.
LAYERS = (("SpineLayer", (SPINE,)), ("BlockLayer", (BLOCK, OTHER)))
NETWORK = {
    "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "ClusterNetworkTopology",
    "metadata": {"name": "default"}, "spec": {"networkTopologySpec": [
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "BlockLayer"},
        {"topologyLayer": "BlockLayer", "parentTopologyLayer": "SpineLayer", "labelKey": [BLOCK, OTHER]},
        {"topologyLayer": "SpineLayer", "labelKey": [SPINE]},
    ]},
}  # fmt: skip
LABELS = st.fixed_dictionaries(
    {}, optional={SPINE: st.sampled_from("st"), BLOCK: st.sampled_from("bc"), OTHER: st.sampled_from("bd")}
)
NODES = st.lists(LABELS, max_size=8).map(lambda all_: {f"n{at}": labels for at, labels in enumerate(all_)})


@given(NODES)
@settings(max_examples=sampled(100), deadline=None)
def test_every_domain_is_told_once_with_its_nodes_its_parent_and_its_children(nodes: dict[str, Any]) -> None:
    told = detail_status(LAYERS, nodes)
    paths = [path for name, labels in nodes.items() if (path := path_of(name, labels))]
    spines = sorted({spine for spine, _ in paths})
    expected: list[tuple[Any, ...]] = [("ClusterTopologyLayer", "", None, len(paths), spines)]
    for spine in spines:
        blocks = sorted({block for one, block in paths if one == spine})
        expected.append(("SpineLayer", spine, "", sum(one == spine for one, _ in paths), blocks))
        expected += [("BlockLayer", block, spine, paths.count((spine, block)), []) for block in blocks]
    assert [flat(entry) for entry in told] == expected
    for entry in told:
        below = {"ClusterTopologyLayer": "SpineLayer", "SpineLayer": "BlockLayer", "BlockLayer": "NodeTopologyLayer"}
        assert entry["childTopologyLayer"] == below[entry["topologyInfo"]["topologyLayer"]]


@given(NODES.filter(len))
@settings(max_examples=sampled(30), deadline=None)
def test_gangs_are_gathered_in_the_domains_that_are_told(nodes: dict[str, Any]) -> None:
    """A node that is in no domain of a layer, since it lacks the label of a wider one, is usable all the same."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "manifests.yaml"
        objects = (node(name, labels, cpu=1, pods=9) for name, labels in nodes.items())
        file.write_text(yaml.safe_dump_all([NETWORK, *objects]))
        document, _, findings = cluster_of([file])
        status = network_of([file])["status"]["detailStatus"]
    assert not findings
    assert status == detail_status(LAYERS, nodes)
    snapshot = open_case(document).snapshot
    topology, whole = snapshot.topology, [name for name, labels in nodes.items() if path_of(name, labels)]
    assert len(snapshot.nodes) == len(nodes)
    told = [(entry["topologyInfo"]["topologyLayer"], entry["nodeNum"]) for entry in status]
    assert told[0][1] == len(whole)
    sizes = topology.stop - topology.start
    spines = [int(size) for size in sizes[topology.at_level(0)]]
    assert Counter(spines) == Counter(many for layer, many in told if layer == "SpineLayer")
    inside = [domain for domain in topology.at_level(1).tolist() if topology.parent[domain] != 0]
    assert Counter(sizes[inside].tolist()) == Counter(many for layer, many in told if layer == "BlockLayer")


def path_of(name: str, labels: dict[str, str]) -> tuple[str, str] | None:
    """Spine and block of a node, which is a block of its own without a label; None if it is in no spine."""
    if SPINE not in labels:
        return None
    return labels[SPINE], labels.get(BLOCK) or labels.get(OTHER) or name


def flat(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Layer, name, the parent's name, number of nodes, and names of children."""
    info, parent = entry["topologyInfo"], entry.get("parentTopologyInfo", {}).get("topologyName")
    return (
        info["topologyLayer"], info["topologyName"], parent, entry["nodeNum"], entry.get("childTopologyNames", []),
    )  # fmt: skip
