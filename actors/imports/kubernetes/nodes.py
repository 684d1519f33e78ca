"""Nodes, priority classes and disruption budgets: what stands beside pods and queues."""

from __future__ import annotations

from typing import Any

from actors.imports.fields import Fields


def read_node(about: Fields) -> dict[str, Any]:
    """A node; what it can give to pods is taken as it is written."""
    metadata, spec, status = about.inside("metadata"), about.inside("spec"), about.inside("status")
    given = status.quantities("allocatable") or status.quantities("capacity")  # as the API server fills it in
    node: dict[str, Any] = {"name": metadata.text("name"), "allocatable": given}
    if not given:
        about.leave_out(("status", "allocatable"), "a node that does not say what it has, has nothing")
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


def read_priority_class(about: Fields) -> tuple[dict[str, Any], bool]:
    """A priority class, and whether it is that of pods that name none."""
    value, policy = about.whole("value", 0), about.text("preemptionPolicy", "PreemptLowerPriority")
    name = about.inside("metadata").text("name")
    return {"name": name, "value": value, "preemption_policy": policy}, about.flag("globalDefault")


def read_budget(about: Fields) -> dict[str, Any] | None:
    """A disruption budget; None if it covers no pod.

    What may be disrupted is taken from a status that is up to date; without one it is nothing.
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
