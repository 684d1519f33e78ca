"""What a pod asks for, as Kubernetes' scheduler counts it.

Source: Kubernetes, "Init Containers" and "Sidecar Containers" (resource sharing), "Pod Overhead", and "Resource
Management for Pods and Containers" (pod-level resources, in-place resize). A pod asks for the sum of its containers and
sidecars, or for the most that one init container needs beside the sidecars started before it, whichever is more.
Amounts that the pod itself states replace these; overhead is added. A limit without a request counts as a request, as
on creation. During a resize the greater of the requested and the allocated amount counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.documents.quantities import Quantity
from actors.imports.fields import Fields

_OF_PODS = ("cpu", "memory")
Units = dict[str, int]


def request_of(spec: Fields, status: Fields) -> dict[str, Quantity]:
    """The request of a pod, as a cluster file writes it."""
    held = _held(status)
    sidecars: Units = {}
    most: Units = {}
    for container in spec.items("initContainers"):
        own = _asked(container, held)
        if container.text("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
            most = _most(most, sidecars)
        else:
            most = _most(most, _sum(sidecars, own))
    total = sidecars
    for container in spec.items("containers"):
        total = _sum(total, _asked(container, held))
    total = _most(total, most)
    whole = spec.inside("resources")
    asked, limits = whole.amounts("requests"), whole.amounts("limits")
    for resource, amount in ({key: limits[key] for key in limits if key not in total} | asked).items():
        if resource in _OF_PODS or resource.startswith("hugepages-"):
            total[resource] = amount
        else:
            whole.leave_out(
                ("requests", resource), "a pod as a whole can only ask for processors, memory and huge pages"
            )
    return as_quantities(_sum(total, spec.amounts("overhead")))


def _asked(container: Fields, held: Mapping[str, Units]) -> Units:
    resources = container.inside("resources")
    resources.skip("claims")
    asked = resources.amounts("limits") | resources.amounts("requests")
    return _most(asked, held.get(container.text("name"), {}))


def _held(status: Fields) -> dict[str, Units]:
    """What the status says each container holds; empty if it reports no resize."""
    held: dict[str, Units] = {}
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.items(key):
            allocated = container.amounts("allocatedResources")
            held[container.text("name")] = _most(allocated, container.inside("resources").amounts("requests"))
    return held


def _sum(one: Units, other: Units) -> Units:
    return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}


def _most(one: Units, other: Units) -> Units:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in one | other}


def as_quantities(units: Units) -> dict[str, Quantity]:
    """Amounts in base units as a cluster file writes them; amounts of 0 are left out."""
    return {key: _written(key, amount) for key, amount in units.items() if amount}


def _written(resource: str, amount: int) -> Quantity:
    if resource != "cpu":
        return amount
    return f"{amount}m" if amount % 1000 else amount // 1000
