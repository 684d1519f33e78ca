"""Koordinator's quota trees: root quotas that have nodes of their own ("Multi Tree Elastic Quota").

The quotas of a tree share what its nodes have, and neither lend to other trees nor borrow from them. In a cluster file
the root quota of a tree is a queue that is entitled to exactly that, keeps it, and can hold no more; the quotas without
a tree share the rest. Pods of a tree may only use its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from actors.documents.quantities import base_units
from actors.imports.fields import Fields
from actors.imports.kubernetes.quotas.labels import OPERATORS, matches
from actors.imports.kubernetes.requests import Units, as_quantities

_STATED = ("deserved", "capability", "guarantee")


@dataclass(frozen=True, slots=True)
class QuotaProfile:
    """An ``ElasticQuotaProfile``: which nodes a tree has, by their labels, and how much of them it may use."""

    about: Fields
    selector: Mapping[str, str]
    requirements: tuple[Mapping[str, Any], ...]
    ratio: Fraction

    def has(self, node: Mapping[str, Any]) -> bool:
        """Whether a node belongs to the tree."""
        labels = node.get("labels", {})
        return self.selector.items() <= labels.items() and all(matches(each, labels) for each in self.requirements)


@dataclass(slots=True)
class QuotaTrees:
    """What was read of quota trees.

    Attributes
    ----------
    profiles
        By the name of the root quota.
    totals
        By root quota: what its nodes have, in base units; None if it does not say so.
    members
        By quota: the object, and the id of its tree.
    """

    profiles: dict[str, QuotaProfile] = field(default_factory=dict)
    totals: dict[str, Units | None] = field(default_factory=dict)
    members: dict[str, tuple[Fields, str]] = field(default_factory=dict)

    def profile(self, about: Fields) -> None:
        """``ElasticQuotaProfile``."""
        spec = about.inside("spec")
        spec.skip("quotaLabels")
        selector, text = spec.inside("nodeSelector"), spec.text("resourceRatio", "1")
        requirements = []
        for each in selector.items("matchExpressions"):
            operator = each.text("operator")
            if operator not in OPERATORS:
                each.refuse("operator", f"expected one of {', '.join(OPERATORS)}, found {operator!r}")
            values = {"values": each.texts("values")} if operator in ("In", "NotIn") else {}
            requirements.append({"key": each.text("key"), "operator": operator, **values})
        try:
            ratio = Fraction(text)
        except (ValueError, ZeroDivisionError):
            ratio = Fraction(0)
        if not 0 < ratio <= 1:
            spec.remark("resourceRatio", f"{text!r} is no ratio above 0 and up to 1: all that the nodes have counts")
            ratio = Fraction(1)
        name = spec.text("quotaName")
        self.profiles[name] = QuotaProfile(about, selector.words("matchLabels"), tuple(requirements), ratio)
        self.totals.setdefault(name, None)

    def settle(self, documents: dict[str, dict[str, Any]], nodes: Sequence[Mapping[str, Any]]) -> None:
        """Write into the queues what each tree has.

        Parameters
        ----------
        documents
            Queues by name; the root quota of a profile is added if it is not there, as Koordinator does.
        nodes
            Node documents.
        """
        for name in self.profiles:
            documents.setdefault(name, {"name": name})
        roots = {name: self.root_of(name, documents) for name in documents}
        for name, (about, tree) in self.members.items():
            if roots[name] is None:
                about.leave_out((), f"no root quota of the tree {tree!r} is among the manifests: it shares with all")
        for root, said in self.totals.items():
            total = said if said is not None else self._sum(root, documents[root], nodes)
            members = [documents[name] for name, own in roots.items() if own == root]
            stated = {resource for each in members for key in _STATED for resource in each.get(key, ())}
            amounts = as_quantities({resource: amount for resource, amount in total.items() if resource in stated})
            documents[root].update({key: dict(amounts) for key in _STATED})

    def root_of(self, name: str, documents: Mapping[str, Mapping[str, Any]]) -> str | None:
        """The root quota of the tree of a quota; None if it is in none."""
        for one in _chain(name, documents):
            if one in self.totals:
                return one
        return None

    def _sum(self, root: str, document: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> Units:
        """What the nodes of a tree have, in base units: by its profile, else the minimum of its root quota."""
        profile, total = self.profiles.get(root), Units()
        if profile is None:
            return {resource: base_units(resource, amount) for resource, amount in document.get("deserved", {}).items()}
        for node in nodes:
            for resource, amount in node["allocatable"].items() if profile.has(node) else ():
                total[resource] = total.get(resource, 0) + base_units(resource, amount)
        return {resource: int(amount * profile.ratio) for resource, amount in total.items()}

    def confine(self, queue: str, tasks: Sequence[dict[str, Any]], documents: Mapping[str, Mapping[str, Any]]) -> None:
        """Let the waiting tasks of a queue use the nodes of its tree only, as Koordinator's webhook does."""
        profile = self.profiles.get(self.root_of(queue, documents) or "")
        for task in tasks if profile is not None else ():
            if task["status"] == "Pending" and profile is not None:
                _confine(task, profile)


def _confine(task: dict[str, Any], profile: QuotaProfile) -> None:
    if profile.selector:
        task["node_selector"] = {**profile.selector, **task.get("node_selector", {})}
    if profile.requirements:
        terms = task.get("node_affinity") or [[]]
        task["node_affinity"] = [[*term, *(dict(each) for each in profile.requirements)] for term in terms]


def _chain(name: str, documents: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A queue and those above it."""
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        yield name
        name = str(documents.get(name, {}).get("parent") or "")
