"""Queues of Volcano and KAI Scheduler, quotas of Koordinator and queues of Kueue as queues of a cluster file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.documents.quantities import QuantityRefused, base_units
from actors.imports.fields import Fields
from actors.imports.kubernetes.kai import parts_of
from actors.imports.kubernetes.quotas.kueue import KueueQuotas
from actors.imports.kubernetes.quotas.quota_trees import QuotaTrees
from actors.imports.kubernetes.requests import Units, as_quantities
from actors.imports.marks import Marked, find

#: Roots of the trees, which need not be described.
_ROOTS = ("", "root", "koordinator-root-quota")


@dataclass(slots=True)
class ImportedQueues:
    """The queues that were read.

    Attributes
    ----------
    documents
        By name, as a cluster file writes them.
    abouts
        By name: the object that a queue comes from.
    of_namespace
        By namespace: the queue of its pods that bear no mark.
    shares
        By name of a quota: the share that it states for each resource, in base units.
    trees
        Quotas that share nodes of their own.
    kueue
        The quotas of cluster queues, which are counted by flavor.
    """

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    abouts: dict[str, Fields] = field(default_factory=dict)
    of_namespace: dict[str, str] = field(default_factory=dict)
    shares: dict[str, Units] = field(default_factory=dict)
    trees: QuotaTrees = field(default_factory=QuotaTrees)
    kueue: KueueQuotas = field(default_factory=KueueQuotas)

    def _add(self, about: Fields, document: dict[str, Any]) -> None:
        metadata = about.inside("metadata")
        name = metadata.text("name")
        if name in self.documents:
            about.leave_out((), f"there is a queue {name!r} already")
            return
        if (created := metadata.time("creationTimestamp")) is not None:
            document["created"] = created
        said = {key: value for key, value in document.items() if value not in (None, {}, "")}
        self.documents[name], self.abouts[name] = {"name": name, **said}, about

    def volcano(self, about: Fields) -> None:
        """``Queue`` of scheduling.volcano.sh."""
        spec, status = about.inside("spec"), about.inside("status")
        state = status.text("state", "Open")
        for key, passes in (("dequeueStrategy", "traverse"), ("affinity", None), ("extendClusters", None)):
            if spec.get(key) not in (None, passes, {}, []):
                spec.leave_out(key, "this has no counterpart here")
        self._add(
            about,
            {
                "parent": _parent(spec.text("parent")),
                "priority": spec.whole("priority"),
                "weight": float(spec.count("weight", 1)),
                "capability": spec.quantities("capability"),
                "deserved": spec.quantities("deserved"),
                "guarantee": spec.inside("guarantee").quantities("resource"),
                "reclaimable": None if spec.flag("reclaimable", True) else False,
                "state": state if state in ("Closed", "Closing") else None,
            },
        )

    def kai(self, about: Fields) -> None:
        """``Queue`` of scheduling.run.ai."""
        (queue,) = parts_of(about, "Queue").queues
        self._add(about, {key: value for key, value in queue.items() if key not in ("name", "created")})

    def quota(self, about: Fields) -> None:
        """``ElasticQuota``; in Koordinator quotas form a tree."""
        spec, name = about.inside("spec"), about.inside("metadata").text("name")
        parent = find("parent", "queue", [about])
        lends, kept = find("lends", "queue", [about]), find("kept", "queue", [about])
        if (tree := find("tree", "queue", [about])) is not None:
            self.trees.members[name] = about, str(tree.value)
        if (root := find("tree_root", "queue", [about])) is not None and root.value == "true":
            self._root_quota(about, name)
            return
        least, most = spec.quantities("min"), spec.bounds("max")
        shared = find("shares", "queue", [about])
        shares = _amounts(shared) if shared is not None else {}
        if not any(shares.values()):  # nothing, or nothing but zeros: then Koordinator takes the maximum
            shares = {key: base_units(key, amount, unlimited=True) for key, amount in most.items()}
        if shares:
            self.shares[name] = {**dict.fromkeys(most, 0), **shares}
        guaranteed = _amounts(kept) if kept is not None else {}
        guarantee = as_quantities(guaranteed)
        if lends is not None and lends.value == "false":
            guarantee |= {key: one for key, one in least.items() if base_units(key, one) >= guaranteed.get(key, 0)}
        if (namespaces := find("namespaces", "queue", [about])) is not None:
            self.of_namespace = dict.fromkeys(_names(namespaces), name) | self.of_namespace
        if about.inside("metadata").text("namespace", name) == name:  # the quota that a namespace calls by its own name
            self.of_namespace[name] = name
        self._add(
            about,
            {
                "parent": _parent(str(parent.value) if parent is not None else ""),
                "deserved": least,
                "capability": most,
                "guarantee": guarantee,
            },
        )

    def _root_quota(self, about: Fields, name: str) -> None:
        """The root of a quota tree: its minimum and maximum say nothing beside what the nodes of the tree have."""
        spec = about.inside("spec")
        spec.skip("max")
        total = find("tree_total", "queue", [about])
        self.trees.totals[name] = None if total is None else _amounts(total)
        self._add(about, {"deserved": spec.quantities("min")})

    def cluster_queue(self, about: Fields) -> None:
        """``ClusterQueue`` of Kueue."""
        self._add(about, self.kueue.cluster_queue(about))

    def finished(self, nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The queues of the cluster file, by name, with the cohorts and the parents that queues name."""
        for name, amounts in self.kueue.documents().items():
            self.documents.setdefault(name, {"name": name}).update(amounts)
        self._weigh()
        self.trees.settle(self.documents, nodes)
        self._absent_parents()
        return [self.documents[name] for name in sorted(self.documents)]

    def _absent_parents(self) -> None:
        """Make the parents that no object describes, without any entitlement."""
        for name, about in self.abouts.items():
            parent = self.documents[name].get("parent")
            if parent is not None and parent not in self.documents:
                about.leave_out((), f"there is no queue {parent!r} among the manifests, so it is entitled to nothing")
                self.documents[parent] = {"name": parent}

    def _weigh(self) -> None:
        """Set the weights of quotas: one number if siblings share all resources alike, else one for each resource.

        Only the ratio between siblings matters.
        """
        families: dict[str, list[str]] = {}
        for name in sorted(self.shares):
            families.setdefault(str(self.documents[name].get("parent", "")), []).append(name)
        for names in families.values():
            named = sorted({resource for name in names for resource in self.shares[name]})
            by = "cpu" if "cpu" in named else next(iter(named), "")
            own = [self.shares[name].get(by, 0) for name in names]
            alike = all(_proportional(own, [self.shares[name].get(other, 0) for name in names]) for other in named)
            for name, share in zip(names, own, strict=True):
                if alike:
                    self.documents[name]["weight"] = share / 1000 if by == "cpu" else float(share)
                else:
                    said = {resource: float(self.shares[name].get(resource, 0)) for resource in named}
                    self.documents[name]["over_quota_weight"] = said


def _proportional(some: Sequence[int], others: Sequence[int]) -> bool:
    """Whether two lists are the same but for a factor above 0."""
    whole, theirs = sum(some), sum(others)
    return (whole > 0) == (theirs > 0) and all(a * theirs == b * whole for a, b in zip(some, others, strict=True))


def _parent(name: str) -> str | None:
    return None if name in _ROOTS else name


def json_of(marked: Marked) -> Any:
    """The value of a mark read as JSON; a list or mapping is taken as it is."""
    if not isinstance(marked.value, str):
        return marked.value
    try:
        return json.loads(marked.value)
    except (ValueError, RecursionError):
        marked.about.refuse(marked.mark.place, f"expected JSON, found {marked.value[:60]!r}")


def _amounts(marked: Marked) -> Units:
    given = json_of(marked)
    try:
        return {resource: base_units(resource, amount) for resource, amount in dict(given).items()}
    except (QuantityRefused, TypeError, ValueError):
        marked.about.refuse(marked.mark.place, "expected amounts by resource, as JSON")


def _names(marked: Marked) -> list[str]:
    given = json_of(marked)
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        marked.about.refuse(marked.mark.place, "expected a list of names, as JSON")
    return given
