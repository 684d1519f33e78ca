"""Volcano's HyperNodes as domains of a cluster file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actors.imports.fields import Fields

#: Bounds on regular expressions of users. They are matched by backtracking, which could take exponential time.
_LONGEST, _MOST_REPEATS = 256, 3


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A network domain of Volcano."""

    about: Fields
    name: str
    tier: int
    tier_name: str
    members: tuple[Fields, ...]


def written_out(hypernodes: Sequence[HyperNode], nodes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The ``topology`` of a cluster file with HyperNodes as domains; tier 3 is the level ``tier-3``."""
    names = [node["name"] for node in nodes]
    labels = {node["name"]: node.get("labels", {}) for node in nodes}
    parents: dict[str, str] = {}
    placed: dict[str, HyperNode] = {}
    inside: dict[str, list[str]] = {}
    others = [each.name for each in hypernodes]
    for each in sorted(hypernodes, key=lambda one: (one.tier, one.name)):
        for member in each.members:
            kind = member.text("type", "Node")
            for name in _members(member, names if kind == "Node" else others, labels if kind == "Node" else {}):
                if kind != "Node":
                    parents.setdefault(name, each.name)
                elif name in placed:
                    if placed[name].name != each.name:
                        member.leave_out((), f"{name} is in {placed[name].name} already")
                else:
                    placed[name] = each
                    inside.setdefault(each.name, []).append(name)
    tiers = Counter(each.tier for each in hypernodes)
    domains = [
        {"name": each.name, "level": f"tier-{each.tier}"}
        | ({"parent": parents[each.name]} if each.name in parents else {})
        | ({"nodes": sorted(inside[each.name])} if each.name in inside else {})
        for each in sorted(hypernodes, key=lambda one: (-one.tier, one.name))
    ]
    return {"levels": [f"tier-{tier}" for tier in sorted(tiers, reverse=True)], "domains": domains}


def _members(member: Fields, names: Sequence[str], labels: Mapping[str, Mapping[str, str]]) -> list[str]:
    selector = member.inside("selector")
    exact, pattern = selector.inside("exactMatch").text("name"), selector.inside("regexMatch").text("pattern")
    by_label = selector.inside("labelMatch")
    if exact:
        if exact not in names:
            selector.leave_out(("exactMatch", "name"), f"there is no {exact!r} among the manifests")
        return [exact] if exact in names else []
    if pattern:
        return [name for name in names if _pattern(selector, pattern).search(name)]
    if by_label.get("matchExpressions"):
        by_label.leave_out("matchExpressions", "nodes are selected by labels alone")
        return []
    wanted = by_label.words("matchLabels")
    return [name for name in names if wanted and wanted.items() <= labels.get(name, {}).items()]


def _pattern(selector: Fields, pattern: str) -> re.Pattern[str]:
    repeats = len(re.findall(r"[*+{]", pattern))
    if len(pattern) > _LONGEST or repeats > _MOST_REPEATS or re.search(r"\)[*+{]", pattern):
        expected = f"expected at most {_LONGEST} characters and {_MOST_REPEATS} repeats, none of them of a group"
        selector.refuse(("regexMatch", "pattern"), f"{expected}, found {pattern[:60]!r}")
    try:
        return re.compile(pattern)
    except re.error as error:
        selector.refuse(("regexMatch", "pattern"), f"expected a regular expression, found {pattern[:60]!r}: {error}")
