"""Cuts a full list of the fleet into messages that fit an entry, and joins them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgpack

from actors.protocol.bodies import LISTS, FleetListed

_LISTS = tuple(section for section in LISTS if section != "podgroups")
PART_BYTES = 512 * 1024


def fingerprint(part: FleetListed, revision: int) -> bytes:
    """A digest of a part and its revision: the same only for a part that is sent again."""
    packed = msgpack.packb([revision, part.list_id, part.part, part.parts, part.cluster])
    return blake2b(packed, digest_size=8).digest()


def cut(cluster: Mapping[str, Any], list_id: str, part_bytes: int = PART_BYTES) -> list[FleetListed]:
    """Cut a cluster file into parts of about ``part_bytes``, in the order of the file.

    Every part is a piece of a cluster file. A podgroup whose tasks do not fit into one part is repeated in the next
    part, with the same description and further tasks; so are the topology and its domains.
    """
    pieces: list[dict[str, Any]] = [{}]
    used = 0
    for section, item in _items(cluster):
        size = len(msgpack.packb(item))
        if pieces[-1] and used + size > part_bytes:
            pieces.append({})
            used = 0
        used += size
        _add(pieces[-1], section, item)
    return [
        FleetListed(list_id=list_id, part=part, parts=len(pieces), cluster=piece) for part, piece in enumerate(pieces)
    ]


def _add(piece: dict[str, Any], section: str, item: Any) -> None:
    """Put an item, or the next slice of the topology, into a piece."""
    if section in _LISTS or section == "podgroups":
        piece.setdefault(section, []).append(item)
    elif section == "topology" and piece.get(section) and item and item.get("domains") is not None:
        piece[section] = {**item, "domains": [*(piece[section].get("domains") or ()), *item["domains"]]}
    else:
        piece[section] = item


def _items(cluster: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Items that must stay in one piece, each with its section; tasks of a podgroup by the hundred."""
    for section, value in cluster.items():
        if section in _LISTS:
            yield from ((section, item) for item in value)
        elif section == "podgroups":
            for podgroup in value:
                tasks = podgroup.get("tasks", [])
                for first in range(0, max(1, len(tasks)), 100):
                    yield section, {**podgroup, "tasks": tasks[first : first + 100]}
        elif section == "topology" and isinstance(value, Mapping) and "domains" in value:
            domains = value["domains"]
            for first in range(0, max(1, len(domains)), 100):
                yield section, {**value, "domains": domains[first : first + 100]}
        else:
            yield section, value


@dataclass(slots=True)
class Listing:
    """Collects the parts of one list; parts may come in any order and more than once.

    A part of another list starts that list, since a fleet that was interrupted lists again from the beginning.

    Attributes
    ----------
    bytes
        Packed bytes of the parts of this list; a part that comes again counts again.
    """

    _list_id: str | None = None
    _parts: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    bytes: int = 0

    def add(self, part: FleetListed) -> dict[str, Any] | None:
        """Take a part; the whole cluster file once all parts are there, else None."""
        if part.list_id != self._list_id:
            self._list_id, self._parts, self.bytes = part.list_id, {}, 0
        self.bytes += len(msgpack.packb(part.cluster))
        self._parts[part.part] = part.cluster
        if len(self._parts) < part.parts:
            return None
        whole = _joined([self._parts[at] for at in sorted(self._parts)])
        self._list_id, self._parts = None, {}
        return whole


def _joined(pieces: list[Mapping[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    podgroups: dict[tuple[str, str], dict[str, Any]] = {}
    for piece in pieces:
        for section, value in piece.items():
            if section == "podgroups":
                listed = whole.setdefault(section, [])
                for podgroup in value:
                    key = (str(podgroup.get("namespace", "default")), str(podgroup.get("name")))
                    known = podgroups.get(key)
                    if known is None:
                        known = podgroups[key] = {**podgroup, "tasks": []}
                        listed.append(known)
                    known["tasks"].extend(podgroup.get("tasks", []))
            elif section in _LISTS:
                whole.setdefault(section, []).extend(value)
            else:
                _add(whole, section, value)
    return whole
