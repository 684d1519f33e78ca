"""Flavors of Kueue: what a queue may hold of a resource on each kind of node, and the flavor of each pod."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import manifests
from tests.support.manifests import Object, imported, manifest, queue
from tests.support.simulating import simulate

GPU, KIND = "nvidia.com/gpu", "example.com/kind"
API = "kueue.x-k8s.io/v1beta1"


def node(name: str, kind: str, **spec: Any) -> Object:
    return manifests.node(name, {KIND: kind}, spec, cpu="16", pods="110", **{GPU: "8"})


def flavor(name: str, **spec: Any) -> Object:
    return manifest(API, "ResourceFlavor", name, {"nodeLabels": {KIND: name}, **spec})


def cluster_queue(name: str, flavors: dict[str, Object], **spec: Any) -> Object:
    """A cluster queue; ``flavors`` has the quota of GPUs by flavor."""
    tried = [{"name": one, "resources": [{"name": GPU, **quota}]} for one, quota in flavors.items()]
    groups = [{"coveredResources": [GPU], "flavors": tried}]
    return manifest(API, "ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec})


def local_queue(name: str) -> Object:
    return manifest(API, "LocalQueue", name, {"clusterQueue": name}, about={"namespace": "default"})


def pod(name: str, queue: str, gpus: int, *, on: str = "", made: int = 0, **spec: Any) -> Object:
    containers = [{"name": "c", "resources": {"limits": {GPU: str(gpus)}}}]
    labels = {"kueue.x-k8s.io/queue-name": queue}
    about = {"labels": labels, "creationTimestamp": f"2026-01-01T00:00:{made:02}Z"}
    spec = {"containers": containers, **({"nodeName": on} if on else {}), **spec}
    return manifests.pod(name, about=about, status={"phase": "Running" if on else "Pending"}, **spec)


QUOTAS = {"reserved": {"nominalQuota": 8}, "spot": {"nominalQuota": 4}}
BASE = [node("r0", "reserved"), node("s0", "spot"), flavor("reserved"), flavor("spot"), local_queue("q")]


def tasks(document: Object) -> dict[str, Object]:
    return {task["name"]: task for group in document["podgroups"] for task in group["tasks"]}


def test_a_resource_in_several_flavors_is_counted_for_each_on_the_nodes_that_have_it(tmp_path: Path) -> None:
    document, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS))
    assert queue(document, "q")["deserved"] == {f"{GPU}@reserved": 8, f"{GPU}@spot": 4}
    assert queue(document, "q")["capability"] == {f"{GPU}@reserved": 8, f"{GPU}@spot": 4}
    allocatable = {each["name"]: each["allocatable"] for each in document["nodes"]}
    assert allocatable["r0"] == {"cpu": "16", GPU: "8", "pods": "110", f"{GPU}@reserved": 8}
    assert allocatable["s0"] == {"cpu": "16", GPU: "8", "pods": "110", f"{GPU}@spot": 8}
    assert findings == []


def test_a_resource_in_one_flavor_keeps_its_name_and_pods_get_the_labels_and_tolerations_of_it(tmp_path: Path) -> None:
    toleration = {"key": "spot", "operator": "Exists", "effect": "NoSchedule"}
    taints = [{"key": "spot", "effect": "NoSchedule"}]
    only = [
        node("s0", "spot", taints=taints), flavor("spot", nodeTaints=taints, tolerations=[toleration]),
        local_queue("q"), cluster_queue("q", {"spot": {"nominalQuota": 4}}), pod("w", "q", 2),
    ]  # fmt: skip
    document, findings = imported(tmp_path, *only)
    assert queue(document, "q")["capability"] == {GPU: 4}
    waiting = tasks(document)["w"]
    assert (waiting["request"], waiting["node_selector"]) == ({GPU: 2}, {KIND: "spot"})
    assert (waiting["tolerations"], findings) == ([toleration], [])
    assert simulate(document, 1)["cycles"][0]["bindings"] == [{"task": "default/w", "node": "s0"}]


def test_flavors_are_filled_in_their_order_by_priority_and_age(tmp_path: Path) -> None:
    waiting = [pod("third", "q", 4, made=3), pod("first", "q", 4, priority=5, made=9), pod("second", "q", 4, made=2)]
    document, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), *waiting)
    counted = {name: next(key for key in task["request"] if "@" in key) for name, task in tasks(document).items()}
    assert counted == {"first": f"{GPU}@reserved", "second": f"{GPU}@reserved", "third": f"{GPU}@spot"}
    assert "Pod third: counted in flavor 'spot' of reserved, spot in 'q'" in findings
    (cycle,) = simulate(document, 1)["cycles"]
    places = {each["task"].partition("/")[2]: each["node"] for each in cycle["bindings"]}
    assert places == {"first": "r0", "second": "r0", "third": "s0"}


def test_a_queue_holds_no_more_of_a_flavor_than_its_quota_however_much_is_free_there(tmp_path: Path) -> None:
    """Of the nodes alone all four could start; the quota of reserved takes two, that of spot one."""
    waiting = [pod(f"w{at}", "q", 4, made=at) for at in range(4)]
    document, _ = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), *waiting)
    bound = {each["task"] for each in simulate(document, 1)["cycles"][0]["bindings"]}
    assert bound == {"default/w0", "default/w1", "default/w2"}


def test_a_pod_that_runs_is_counted_in_the_flavor_of_its_node(tmp_path: Path) -> None:
    running = pod("old", "q", 4, on="s0")
    document, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), running, pod("new", "q", 8, made=5))
    assert tasks(document)["old"]["request"] == {GPU: 4, f"{GPU}@spot": 4}
    assert tasks(document)["new"]["request"] == {GPU: 8, f"{GPU}@reserved": 8}
    assert findings == ["Pod new: counted in flavor 'reserved' of reserved, spot in 'q'"]


def test_a_pod_on_a_node_of_no_flavor_is_told_and_counted_in_none(tmp_path: Path) -> None:
    other = [node("x0", "other"), pod("old", "q", 4, on="x0")]
    document, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), *other)
    assert tasks(document)["old"]["request"] == {GPU: 4}
    told = "'x0' is of no flavor of 'q': the quota of none is charged for it"
    assert findings == [f"Pod old: spec.nodeName: {told}"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [({"nodeSelector": {KIND: "spot"}}, "spot"), ({"nodeSelector": {"other": "label"}}, "reserved"), ({}, "reserved")],
)
def test_a_pod_takes_the_first_flavor_that_its_selector_matches(
    tmp_path: Path, constraint: Object, expected: str
) -> None:
    document, _ = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), pod("w", "q", 1, **constraint))
    assert f"{GPU}@{expected}" in tasks(document)["w"]["request"]


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["spot"], "spot"),
        ("NotIn", ["reserved"], "spot"),
        ("Exists", [], "reserved"),
        ("DoesNotExist", [], None),
        ("Gt", ["1"], "reserved"),
    ],
)
def test_a_node_affinity_chooses_among_the_flavors(
    tmp_path: Path, operator: str, values: list[str], expected: str | None
) -> None:
    terms = [{"matchExpressions": [{"key": KIND, "operator": operator, "values": values}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    wish = {"affinity": {"nodeAffinity": required}}
    document, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), pod("w", "q", 1, **wish))
    waiting = tasks(document)["w"]
    if expected is None:
        assert waiting["scheduling_gated"]
        assert findings == ["Pod w: it may use no flavor of 'q', so Kueue does not admit it"]
    else:
        assert f"{GPU}@{expected}" in waiting["request"]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ([], "spot"),
        ([{"key": "held", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}], "reserved"),
        ([{"key": "held", "operator": "Equal", "value": "no"}], "spot"),
        ([{"operator": "Exists"}], "reserved"),
    ],
)
def test_a_flavor_with_a_taint_is_for_pods_that_tolerate_it(
    tmp_path: Path, toleration: list[Object], expected: str
) -> None:
    tainted = flavor("reserved", nodeTaints=[{"key": "held", "value": "yes", "effect": "NoSchedule"}])
    others = [each for each in BASE if each["metadata"]["name"] != "reserved"]
    objects = [*others, tainted, cluster_queue("q", QUOTAS), pod("w", "q", 1, tolerations=toleration)]
    document, _ = imported(tmp_path, *objects)
    assert f"{GPU}@{expected}" in tasks(document)["w"]["request"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, "reserved"),
        ({"flavorFungibility": {"whenCanBorrow": "TryNextFlavor"}}, "spot"),
        ({"flavorFungibility": {"whenCanBorrow": "Borrow"}}, "reserved"),
    ],
)
def test_whether_a_queue_borrows_before_it_tries_the_next_flavor_is_its_choice(
    tmp_path: Path, how: Object, expected: str
) -> None:
    """It has used up its own quota of reserved; the other queue of the cohort has 8 there to lend."""
    queues = [cluster_queue("q", QUOTAS, cohort="all", **how), cluster_queue("lender", QUOTAS, cohort="all")]
    nodes = [node("r1", "reserved"), pod("old", "q", 8, on="r0"), pod("new", "q", 4, made=1)]
    document, findings = imported(tmp_path, *BASE, *queues, *nodes)
    assert f"{GPU}@{expected}" in tasks(document)["new"]["request"]
    assert len(findings) == 1


@pytest.mark.parametrize(("how", "expected"), [({}, "spot"), ({"whenCanPreempt": "Preempt"}, "reserved")])
def test_whether_a_queue_takes_from_others_before_it_tries_the_next_flavor_is_its_choice(
    tmp_path: Path, how: Object, expected: str
) -> None:
    objects = [cluster_queue("q", QUOTAS, flavorFungibility=how), pod("old", "q", 8, on="r0"), pod("new", "q", 4)]
    document, _ = imported(tmp_path, *BASE, *objects)
    assert f"{GPU}@{expected}" in tasks(document)["new"]["request"]


def test_what_one_flavor_lends_is_no_quota_of_another(tmp_path: Path) -> None:
    """The lender holds spot beyond its own; its reserved quota, all unused, does not protect that."""
    quotas = {"reserved": {"nominalQuota": 8}, "spot": {"nominalQuota": 4, "borrowingLimit": 4}}
    queues = [cluster_queue("q", quotas, cohort="all"), cluster_queue("lender", quotas, cohort="all")]
    held = [pod(f"old{at}", "lender", 2, on="s0", made=at) for at in range(4)]
    wants = pod("new", "q", 4, made=9, nodeSelector={KIND: "spot"})
    document, _ = imported(tmp_path, *BASE, local_queue("lender"), *queues, *held, wants)
    assert queue(document, "cohort/all")["capability"] == {f"{GPU}@reserved": 16, f"{GPU}@spot": 8}
    assert queue(document, "q")["capability"] == {f"{GPU}@spot": 8}
    (cycle,) = simulate(document, 1)["cycles"]
    assert len(cycle["evictions"]) == 2
    assert {each["node"] for each in cycle["nominations"]} == {"s0"}


def test_what_is_not_lent_of_a_flavor_is_kept(tmp_path: Path) -> None:
    quotas = {"reserved": {"nominalQuota": 8, "lendingLimit": 3}, "spot": {"nominalQuota": 4, "lendingLimit": 0}}
    objects = [cluster_queue("q", quotas, cohort="all"), cluster_queue("other", QUOTAS, cohort="all")]
    document, _ = imported(tmp_path, *BASE, *objects)
    assert queue(document, "q")["guarantee"] == {f"{GPU}@reserved": 5, f"{GPU}@spot": 4}


def test_a_pod_that_asks_for_what_its_queue_has_no_quota_of_is_not_admitted(tmp_path: Path) -> None:
    strange = {"containers": [{"name": "c", "resources": {"limits": {"example.com/fpga": 1}}}]}
    document, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS), pod("w", "q", 0, **strange))
    assert tasks(document)["w"]["scheduling_gated"]
    assert findings == ["Pod w: 'q' has no quota of example.com/fpga, so Kueue does not admit it"]


def test_processors_of_a_flavor_are_counted_in_millicores(tmp_path: Path) -> None:
    tried = [{"name": one, "resources": [{"name": "cpu", "nominalQuota": "1500m"}]} for one in ("reserved", "spot")]
    spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": tried}]}
    whole = manifest(API, "ClusterQueue", "q", spec)
    half = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}
    document, _ = imported(tmp_path, *BASE, whole, pod("w", "q", 0, **half))
    assert queue(document, "q")["deserved"] == {"cpu@reserved": 1500, "cpu@spot": 1500}
    assert tasks(document)["w"]["request"] == {"cpu": "500m", "cpu@reserved": 500}


def test_flavors_topologies_and_namespaces_that_have_no_place_are_told(tmp_path: Path) -> None:
    selector = {"matchLabels": {"team": "a"}}
    whole = cluster_queue("q", {**QUOTAS, "gone": {"nominalQuota": 1}}, namespaceSelector=selector)
    objects = [*BASE, flavor("with-net", topologyName="net"), whole]
    told = "there is no ResourceFlavor 'gone' among the manifests: any node has it"
    _, findings = imported(tmp_path, *objects)
    assert findings == [
        "ClusterQueue q: spec.namespaceSelector: labels of namespaces have no counterpart here: all may use it",
        f"ClusterQueue q: spec.resourceGroups[0].flavors[2].name: {told}",
        "ResourceFlavor with-net: spec.topologyName: there is no Topology 'net' among the manifests",
    ]


def test_a_queue_that_kueue_closes_to_all_namespaces_is_told(tmp_path: Path) -> None:
    _, findings = imported(tmp_path, *BASE, cluster_queue("q", QUOTAS, namespaceSelector=None))
    told = "without one Kueue lets nothing use the queue; here all may use it"
    assert findings == [f"ClusterQueue q: spec.namespaceSelector: {told}"]
