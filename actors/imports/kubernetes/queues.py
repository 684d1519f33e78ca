"""Queues of Volcano and KAI Scheduler, quotas of Koordinator and queues of Kueue as queues of a cluster file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from actors.documents.quantities import QuantityRefused, base_units
from actors.imports.fields import Fields
from actors.imports.kubernetes.kai import parts_of
from actors.imports.kubernetes.requests import Units, written
from actors.imports.marks import Marked, find

#: Roots of the trees, which need not be described.
_ROOTS = ("", "root", "koordinator-root-quota")
_COHORT = "cohort/"


@dataclass(slots=True)
class ImportedQueues:
    """The queues that were read.

    Attributes
    ----------
    documents
        By name, as a cluster file writes them.
    of_namespace
        By namespace: the queue of its pods that bear no mark.
    local
        Local queues of Kueue: namespace and name to the name of the cluster queue.
    shares
        By name of a quota: the share that it states for each resource, in base units.
    cohorts
        By name of a cohort of Kueue: the nominal quotas of its queues together, in base units.
    """

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    of_namespace: dict[str, str] = field(default_factory=dict)
    local: dict[tuple[str, str], str] = field(default_factory=dict)
    shares: dict[str, Units] = field(default_factory=dict)
    cohorts: dict[str, Units] = field(default_factory=dict)

    def _add(self, about: Fields, document: dict[str, Any]) -> None:
        metadata = about.inside("metadata")
        name = metadata.text("name")
        if name in self.documents:
            about.leave_out((), f"there is a queue {name!r} already")
            return
        if (created := metadata.time("creationTimestamp")) is not None:
            document["created"] = created
        said = {key: value for key, value in document.items() if value not in (None, {}, "")}
        self.documents[name] = {"name": name, **said}

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
        least, most = spec.quantities("min"), spec.quantities("max")
        if (shared := find("shares", "queue", [about])) is not None:
            self.shares[name] = _amounts(shared)
        elif most:
            self.shares[name] = spec.amounts("max")
        guarantee = written(_amounts(kept)) if kept is not None else {}
        if lends is not None and lends.value == "false":
            guarantee = {**guarantee, **least}
        if (namespaces := find("namespaces", "queue", [about])) is not None:
            self.of_namespace.update(dict.fromkeys(_names(namespaces), name))
        self.of_namespace.setdefault(name, name)
        self._add(
            about,
            {
                "parent": _parent(str(parent.value) if parent is not None else ""),
                "deserved": least,
                "capability": most,
                "guarantee": guarantee,
            },
        )

    def cluster_queue(self, about: Fields) -> None:
        """``ClusterQueue`` of Kueue: nominal quota is deserved, borrowing is the ceiling, what is not lent is kept."""
        spec = about.inside("spec")
        cohort = spec.text("cohortName") or spec.text("cohort")
        nominal: Units = {}
        ceiling: Units = {}
        kept: Units = {}
        boundless: set[str] = set()
        flavors: set[str] = set()
        for group in spec.items("resourceGroups"):
            for flavor in group.items("flavors"):
                flavors.add(flavor.text("name"))
                for each in flavor.items("resources"):
                    self._flavor(each, nominal, ceiling, kept)
                    if each.get("borrowingLimit") is None:
                        boundless.add(each.text("name"))
        if len(flavors) > 1:
            spec.leave_out("resourceGroups", f"{len(flavors)} flavors are counted as one: {', '.join(sorted(flavors))}")
        if not cohort:
            ceiling = dict(nominal)
        else:
            ceiling = {resource: most for resource, most in ceiling.items() if resource not in boundless}
            pool = self.cohorts.setdefault(cohort, {})
            for resource, amount in nominal.items():
                pool[resource] = pool.get(resource, 0) + amount
        for key in ("admissionChecks", "admissionChecksStrategy", "preemption", "flavorFungibility"):
            if spec.get(key):
                spec.leave_out(key, "this has no counterpart here; a profile says what may be taken")
        if spec.text("queueingStrategy", "BestEffortFIFO") != "BestEffortFIFO":
            spec.leave_out("queueingStrategy", "a podgroup that cannot start does not hold up others")
        stopped = spec.text("stopPolicy", "None")
        if stopped == "HoldAndDrain":
            spec.leave_out("stopPolicy", "what runs in it stays")
        sharing = spec.inside("fairSharing")
        weight = sharing.get("weight")
        self._add(
            about,
            {
                "parent": _COHORT + cohort if cohort else None,
                "weight": None if weight is None else sharing.units({"cpu": weight}, "weight", "cpu") / 1000,
                "deserved": written(nominal) | {key: 0 for key, amount in nominal.items() if not amount},
                "capability": written(ceiling) | {key: 0 for key, amount in ceiling.items() if not amount},
                "guarantee": written(kept),
                "state": None if stopped == "None" else "Closed",
            },
        )

    @staticmethod
    def _flavor(each: Fields, nominal: Units, ceiling: Units, kept: Units) -> None:
        resource = each.text("name")
        own = each.units({resource: each.get("nominalQuota")}, "nominalQuota", resource)
        nominal[resource] = nominal.get(resource, 0) + own
        if (borrowed := each.get("borrowingLimit")) is not None:
            extra = each.units({resource: borrowed}, "borrowingLimit", resource)
            ceiling[resource] = ceiling.get(resource, 0) + own + extra
        if (lent := each.get("lendingLimit")) is not None:
            kept[resource] = kept.get(resource, 0) + max(
                own - each.units({resource: lent}, "lendingLimit", resource), 0
            )

    def local_queue(self, about: Fields) -> None:
        """``LocalQueue`` of Kueue: a name for a cluster queue within one namespace."""
        metadata, spec = about.inside("metadata"), about.inside("spec")
        if spec.text("stopPolicy", "None") != "None":
            spec.leave_out("stopPolicy", "a local queue is never closed by itself")
        if spec.get("fairSharing"):
            spec.leave_out("fairSharing", "cluster queues share, local ones do not")
        self.local[metadata.text("namespace", "default"), metadata.text("name")] = spec.text("clusterQueue")

    def finished(self) -> list[dict[str, Any]]:
        """The queues of the cluster file, by name, with the cohorts that cluster queues name."""
        for cohort, pool in self.cohorts.items():
            amounts = written(pool)
            self.documents.setdefault(
                _COHORT + cohort, {"name": _COHORT + cohort, "deserved": amounts, "capability": dict(amounts)}
            )
        self._weigh()
        return [self.documents[name] for name in sorted(self.documents)]

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
            alike = True
            for other in named:
                theirs = [self.shares[name].get(other, 0) for name in names]
                alike &= all(a * theirs[0] == b * own[0] for a, b in zip(own, theirs, strict=True))
            for name, share in zip(names, own, strict=True):
                if alike:
                    self.documents[name]["weight"] = share / 1000 if by == "cpu" else float(share)
                else:
                    said = {resource: float(self.shares[name].get(resource, 0)) for resource in named}
                    self.documents[name]["over_quota_weight"] = said


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
