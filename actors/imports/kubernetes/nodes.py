"""Nodes, priority classes and disruption budgets as documents of a cluster file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.imports.fields import Fields
from pipeline.cluster.vocabulary import HOSTNAME

#: The one field of nodes that affinity may match. As a label it holds the name where hostnames differ from it.
NODE_NAME = "metadata.name"


def read_node(about: Fields) -> dict[str, Any]:
    """The document of a node; its amounts stay as they are written."""
    metadata, spec, status = about.inside("metadata"), about.inside("spec"), about.inside("status")
    given = status.quantities("allocatable") or status.quantities(
        "capacity"
    )  # the API server fills in allocatable from capacity
    node: dict[str, Any] = {"name": metadata.text("name"), "allocatable": given}
    if not given:
        about.leave_out(("status", "allocatable"), "a node that does not state what it has counts as empty")
    if labels := metadata.words("labels"):
        node["labels"] = labels
    taints = [
        {key: value for key in ("key", "value", "effect") if (value := taint.text(key))}
        for taint in spec.items("taints")
    ]
    if taints:
        node["taints"] = taints
    if spec.flag("unschedulable"):
        node["unschedulable"] = True
    return node


def match_names(nodes: Sequence[dict[str, Any]], tasks: Sequence[dict[str, Any]]) -> None:
    """Let requirements on the names of nodes hold, since a cluster file has requirements on labels only.

    Hostnames answer them where every node is called by its own; else nodes get a label with their name.
    """
    terms = [term for task in tasks for term in task.get("node_affinity", ())]
    required = [each for term in terms for each in term if each["key"] == NODE_NAME]
    if required and any(node.get("labels", {}).get(HOSTNAME, node["name"]) != node["name"] for node in nodes):
        for node in nodes:
            node.setdefault("labels", {})[NODE_NAME] = node["name"]
        return
    for each in required:
        each["key"] = HOSTNAME


def read_priority_class(about: Fields) -> tuple[dict[str, Any], bool]:
    """The document of a priority class, and whether pods that name no class have it."""
    value, policy = about.whole("value", 0), about.text("preemptionPolicy", "PreemptLowerPriority")
    name = about.inside("metadata").text("name")
    return {"name": name, "value": value, "preemption_policy": policy}, about.flag("globalDefault")


def read_budget(about: Fields) -> dict[str, Any] | None:
    """The document of a disruption budget; None if it covers no pod.

    The number of disruptions that it allows comes from its status; it is 0 if the status is not up to date.
    """
    metadata, spec, status = about.inside("metadata"), about.inside("spec"), about.inside("status")
    if spec.get("selector") is None:
        return None
    selector = spec.inside("selector")
    if selector.get("matchExpressions"):
        selector.leave_out("matchExpressions", "a budget covers by labels alone, so this one covers more")
    allowed = status.count("disruptionsAllowed")
    if not status.data or status.whole("observedGeneration") != metadata.whole("generation"):
        about.leave_out(("status", "disruptionsAllowed"), "its status is not up to date, so nothing may be disrupted")
        allowed = 0
    return {
        "name": metadata.text("name"),
        "namespace": metadata.text("namespace", "default"),
        "match_labels": selector.words("matchLabels"),
        "disruptions_allowed": allowed,
    }
