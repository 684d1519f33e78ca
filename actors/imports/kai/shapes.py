"""The types of the values in objects of KAI Scheduler: a value of a wrong type is refused, and never counts as none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from actors.documents.model import Location

Mistake: TypeAlias = tuple[Location, str]


@dataclass(frozen=True, slots=True)
class Value:
    """A single value; ``needed`` if it may not be absent."""

    expected: str
    fits: Callable[[Any], bool]
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Several:
    """A list of values or mappings of one shape."""

    each: Shape


Shape: TypeAlias = "Value | Several | Mapping[str, Shape]"

_BOUND = 2**31
_TEXT = Value("text", lambda found: isinstance(found, str))
_NAME = Value("a name", lambda found: isinstance(found, str) and bool(found), needed=True)
_WHOLE = Value("a whole number", lambda found: type(found) is int and -_BOUND <= found < _BOUND)
_COUNT = Value("a whole number, at least 0", lambda found: type(found) is int and 0 <= found < _BOUND)
_NUMBER = Value("a number", lambda found: type(found) in (int, float))
_WEIGHT = Value("a number, at least 0", lambda found: type(found) in (int, float) and 0 <= found < float("inf"))

_METADATA: Shape = {"name": _NAME, "namespace": _TEXT, "labels": {}, "annotations": {}}
_LEVELS: Shape = {"topology": _TEXT, "requiredTopologyLevel": _TEXT, "preferredTopologyLevel": _TEXT}
_SHARES: Shape = {"quota": _NUMBER, "limit": _NUMBER, "overQuotaWeight": _WEIGHT}
_SUBGROUP: Shape = {
    "name": _NAME, "parent": _TEXT, "minMember": _COUNT, "minSubGroup": _COUNT, "topologyConstraint": _LEVELS,
}  # fmt: skip
#: By kind; keys that are not listed may have any value. A value may be absent unless it is needed.
SHAPES: Mapping[str, Shape] = {
    "Queue": {
        "metadata": _METADATA,
        "spec": {
            "parentQueue": _TEXT,
            "priority": _WHOLE,
            "resources": {"cpu": _SHARES, "memory": _SHARES, "gpu": _SHARES},
            "preemptMinRuntime": _TEXT,
            "reclaimMinRuntime": _TEXT,
        },
    },
    "PodGroup": {
        "metadata": _METADATA,
        "spec": {
            "queue": _TEXT,
            "minMember": _COUNT,
            "minSubGroup": _COUNT,
            "priorityClassName": _TEXT,
            "preemptibility": _TEXT,
            "stalenessGracePeriod": _TEXT,
            "preemptionDelay": _TEXT,
            "topologyConstraint": _LEVELS,
            "subGroups": Several(_SUBGROUP),
        },
    },
    "Topology": {"metadata": _METADATA, "spec": {"levels": Several({"nodeLabel": _NAME, "alias": _TEXT})}},
    "PriorityClass": {
        "metadata": _METADATA,
        "value": Value(_WHOLE.expected, _WHOLE.fits, needed=True),
        "preemptionPolicy": _TEXT,
        "globalDefault": Value("true or false", lambda found: isinstance(found, bool)),
    },
}


def mistakes(kind: str, plain: Mapping[str, Any]) -> list[Mistake]:
    """Each value of an object that has a wrong type or is missing, and each subgroup that is below itself."""
    found = [*_of_shape(SHAPES[kind], plain, ())]
    if not found and kind == "PodGroup":
        found += _of_subgroups((plain.get("spec") or {}).get("subGroups") or ())
    return found


def stated(found: Any) -> Any:
    """Plain data without the keys whose value is null, which is how Kubernetes reads them."""
    if isinstance(found, dict):
        return {key: stated(value) for key, value in found.items() if value is not None}
    return [stated(each) for each in found] if isinstance(found, list) else found


def _of_shape(shape: Shape, found: Any, here: Location) -> Iterator[Mistake]:
    if isinstance(shape, Value):
        if found is None and shape.needed:
            yield here, f"expected {shape.expected}, found none"
        elif found is not None and not shape.fits(found):
            yield here, f"expected {shape.expected}, found {_shown(found)}"
    elif isinstance(shape, Several):
        if isinstance(found, list):
            for at, each in enumerate(found):
                yield from _of_shape(shape.each, each, (*here, at))
        elif found is not None:
            yield here, f"expected a list, found {_shown(found)}"
    elif found is None or isinstance(found, dict):
        for key, inner in shape.items():
            yield from _of_shape(inner, (found or {}).get(key), (*here, key))
    else:
        yield here, f"expected a mapping, found {_shown(found)}"


def _of_subgroups(listed: Sequence[Mapping[str, Any]]) -> Iterator[Mistake]:
    parents: dict[str, str | None] = {}
    for at, each in enumerate(listed):
        if each["name"] in parents:
            yield ("spec", "subGroups", at, "name"), f"expected each name once, found {each['name']!r} again"
        parents.setdefault(each["name"], each.get("parent"))
    for at, each in enumerate(listed):
        above, seen = each.get("parent"), set[str]()
        while above is not None and above not in seen and above != each["name"]:
            seen.add(above)
            above = parents.get(above)
        if above == each["name"]:
            told = f"expected a subgroup that is not below this one, found {each.get('parent')!r}"
            yield ("spec", "subGroups", at, "parent"), told


def _shown(found: Any) -> str:
    return json.dumps(found, default=str)[:60]
