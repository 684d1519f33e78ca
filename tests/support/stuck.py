"""Small clusters in which the podgroup ``want`` cannot start, each for one reason."""

from collections.abc import Mapping
from typing import Any

NOW = 1_700_000_000.0
GPU = "nvidia.com/gpu"
RACKS = {"levels": ["rack"], "domains": [{"name": f"r{at}", "level": "rack", "nodes": [f"n{at}"]} for at in range(2)]}
APART = [{"topology_key": "kubernetes.io/hostname", "match_labels": {"app": "x"}}]
Document = dict[str, Any]


def node(name: str, **more: Any) -> Document:
    """A node of 8 devices."""
    allocatable = {"cpu": 64, GPU: 8, "pods": 20}
    return {"name": name, "allocatable": allocatable, "labels": {"kubernetes.io/hostname": name}} | more


def task(name: str, gpus: int, at: str | None = None, **more: Any) -> Document:
    """A task; it runs where it is ``at``."""
    runs = {"status": "Running", "node": at} if at else {}
    return {"name": name, "request": {"cpu": 1, GPU: gpus}} | runs | more


def runs(name: str, *at: str, gpus: int = 8, of_task: Mapping[str, Any] | None = None, **more: Any) -> Document:
    """A podgroup of low priority that has run for hours."""
    tasks = [task(f"{name}-{number}", gpus, where, **(of_task or {})) for number, where in enumerate(at)]
    return {
        "name": name, "queue": "a", "priority": 1, "min_available": 1, "phase": "Running", "created": NOW - 9000,
        "started": NOW - 8000, "tasks": tasks,
    } | more  # fmt: skip


def full(**more: Any) -> list[Document]:
    """One podgroup that fills each of the two nodes."""
    return [runs("low0", "n0", **more), runs("low1", "n1", **more)]


def want(count: int, gpus: int = 8, of_task: Mapping[str, Any] | None = None, **more: Any) -> Document:
    """The podgroup that waits."""
    tasks = [task(f"want-{number}", gpus, **(of_task or {})) for number in range(count)]
    return {
        "name": "want", "queue": "a", "priority": 9, "min_available": count, "phase": "Inqueue", "created": NOW - 60,
        "tasks": tasks,
    } | more  # fmt: skip


def cluster(*podgroups: Document, **more: Any) -> Document:
    """Two nodes and two queues that deserve one each."""
    queues = [{"name": name, "deserved": {GPU: 8}} for name in ("a", "b")]
    nodes = [node("n0"), node("n1")]
    return {"version": 1, "now": NOW, "nodes": nodes, "queues": queues, "podgroups": list(podgroups)} | more


def _tainted() -> list[Document]:
    return [node(name, taints=[{"key": "d", "value": "m", "effect": "NoSchedule"}]) for name in ("n0", "n1")]


def _queue(name: str = "a", gpus: int = 16, **more: Any) -> Document:
    return {"name": name, "deserved": {GPU: gpus}} | more


def stuck() -> dict[str, Document]:
    """Every cluster by why its podgroup is stuck."""
    budget = {"name": "keep", "namespace": "default", "match_labels": {"app": "x"}, "disruptions_allowed": 0}
    labelled = {"of_task": {"labels": {"app": "x"}}}
    parts = [{"name": "s0", "min_available": 2, "topology": {"required": "rack"}}, {"name": "s1", "min_available": 1}]
    of_parts = [task(f"want-{at}", 5 if at < 2 else 1, subgroup=f"s{at // 2}") for at in range(3)]
    of_shapes = [task(f"want-{at}", 8 - at, subgroup=f"s{at // 2}") for at in range(3)]
    apart = [task(f"want-{at}", 6 if at < 2 else 4) for at in range(3)]
    last = [{"name": "s0", "min_available": 2}, {"name": "s1", "min_available": 1, "topology": {"required": "rack"}}]
    of_two = [{"name": "s0", "min_available": 4}, {"name": "s1", "min_available": 2}]
    of_roles = [task("want-0", 16, role="ps"), task("want-1", 1, role="w")]
    paced = {"plugins": {"evictionbudget": {"arguments": {"in_window_of_queue": 2, "window_s": 60}}}}
    cooling = {"plugins": {"cdp": {}}}
    keepers = [runs(f"k{at}", f"n{at}", gpus=1, priority=99, **labelled) for at in range(2)]
    return {
        "queue closed": cluster(*full(), want(1), queues=[_queue(state="Closed")]),
        "ceiling": cluster(*full(queue="b"), want(2), queues=[_queue(gpus=8, capability={GPU: 8}), _queue("b", 8)]),
        "own share": cluster(*full(queue="b"), want(2)),
        "their share": cluster(*full(queue="b"), want(1), queues=[_queue(gpus=8), _queue("b")]),
        "not reclaimable": cluster(*full(queue="b"), want(1), queues=[_queue(), {"name": "b", "reclaimable": False}]),
        "budget": cluster(*full(**labelled), want(1), disruption_budgets=[budget]),
        "taint": cluster(*full(), want(1), nodes=_tainted()),
        "cordon": cluster(runs("low1", "n1", priority=10), want(1), nodes=[node("n0", unschedulable=True), node("n1")]),
        "no node": cluster(want(1), nodes=[]),
        "selector": cluster(want(1, of_task={"node_selector": {"zone": "x"}})),
        "apart from each other": cluster(
            *full(gpus=4), want(3, 1, of_task={"labels": {"app": "x"}, "pod_anti_affinity": APART})
        ),
        "apart from others": cluster(*keepers, want(1, 2, of_task={"pod_anti_affinity": APART})),
        "rack": cluster(*full(), want(2, topology={"required": "rack"}), topology=RACKS),
        "no rack": cluster(
            *full(), want(1, topology={"required": "rack"}), topology={"levels": ["rack"], "labels": {"rack": "r"}}
        ),
        "subgroup": cluster(*full(), want(3, min_available=2, subgroups=parts, tasks=of_parts), topology=RACKS),
        "role": cluster(*full(), want(2, roles={"ps": {"min": 1}, "w": {"min": 1}}, tasks=of_roles)),
        "priority": cluster(*full(priority=9), want(1)),
        "not preemptible": cluster(*full(preemptible=False), want(1)),
        "critical": cluster(*full(of_task={"labels": {"app": "x"}}, namespace="kube-system"), want(1)),
        "minimum runtime": cluster(
            *full(started=NOW - 10), want(1), queues=[_queue(preempt_min_runtime=3600, reclaim_min_runtime=3600)]
        ),
        "cool-down": cluster(
            *full(of_task={"labels": {"volcano.sh/cooldown-time": "10m"}}, started=NOW - 10), want(1), policy=cooling
        ),
        "too large": cluster(*full(), want(1, 9)),
        "too many": cluster(*full(), want(3)),
        "never together": cluster(runs("high", "n0", priority=99), want(3, tasks=apart)),
        "beyond the cluster": cluster(*full(), want(3, tasks=[task(f"want-{at}", 8 - at) for at in range(3)])),
        "never beyond the minimum": cluster(
            *full(), want(2, tasks=[task("want-0", 8), task("want-1", 8, preemption_policy="Never")], min_available=1)
        ),
        "gated": cluster(want(2, of_task={"scheduling_gated": True})),
        "too few": cluster(want(1, min_available=3)),
        "too few of a role": cluster(
            want(2, roles={"ps": {"min": 2}}, tasks=[task("want-0", 1, role="ps"), task("want-1", 1)])
        ),
        "not admitted": cluster(
            want(2, phase="Pending", min_resources={GPU: 64}), policy={"actions": ["enqueue", "allocate"]}
        ),
        "window": cluster(*full(), want(1), policy=paced, recent_evictions=[{"queue": "a", "at": NOW - 9, "count": 2}]),
        "never": cluster(*full(), want(1, preemption_policy="Never")),
        "never, and a ceiling": cluster(
            want(2, preemption_policy="Never"), queues=[_queue(capability={GPU: 8}), _queue("b")]
        ),
        "law, and a cordon": cluster(
            *full(of_task={"labels": {"app": "x"}}),
            want(1),
            disruption_budgets=[budget],
            nodes=[node("n0"), node("n1"), node("n2", unschedulable=True)],
        ),
        "delay, and cordons": cluster(
            want(1, preemption_delay=600), nodes=[node(f"n{at}", unschedulable=True) for at in range(2)]
        ),
        "a part that can be spared": cluster(
            runs("high", "n0", priority=99),
            want(3, min_available=2, min_subgroups=1, subgroups=last, tasks=of_shapes),
            topology=RACKS,
        ),
        "too few of a subgroup": cluster(
            want(3, min_available=1, min_subgroups=1, subgroups=of_two, tasks=of_parts), topology=RACKS
        ),
        "delay": cluster(*full(), want(1, preemption_delay=600)),
        "no breaking": cluster(runs("g", "n0", "n1", min_available=2), want(1), policy={"allow_whole_bundle": False}),
    }
