"""A full list survives being cut, whatever the size of its parts and the order in which they come."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from actors.protocol.full_list import Listing, cut


def cluster() -> dict[str, Any]:
    return {
        "version": 1,
        "nodes": [{"name": f"n{n}", "allocatable": {"cpu": 1}} for n in range(300)],
        "topology": {
            "levels": ["block"],
            "domains": [{"name": f"b{n}", "level": "block", "nodes": [f"n{n}"]} for n in range(250)],
        },
        "queues": [{"name": "ml"}],
        "podgroups": [
            {"name": "big", "queue": "ml", "tasks": [{"name": f"t{n}"} for n in range(450)]},
            {"name": "big", "namespace": "other", "queue": "ml", "tasks": [{"name": "t0"}]},
            {"name": "empty", "queue": "ml", "tasks": []},
        ],
    }


@pytest.mark.parametrize("part_bytes", [1, 1_000, 10_000, 10_000_000])
def test_a_list_is_put_together_as_it_was(part_bytes: int) -> None:
    parts = cut(cluster(), "a", part_bytes)
    assert [part.part for part in parts] == list(range(len(parts)))
    assert {part.parts for part in parts} == {len(parts)}
    listing = Listing()
    assert [listing.add(part) for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert listing.add(parts[-1]) == cluster()


def test_parts_are_about_as_large_as_asked() -> None:
    parts = cut(cluster(), "a", 8_000)
    assert len(parts) > 2
    assert max(len(msgpack.packb(part.cluster)) for part in parts) < 10_000


def test_parts_may_come_in_any_order_and_twice() -> None:
    parts = cut(cluster(), "a", 2_000)
    listing = Listing()
    for part in [*reversed(parts[1:]), *parts[1:]]:
        assert listing.add(part) is None
    assert listing.add(parts[0]) == cluster()


def test_another_list_begins_anew() -> None:
    first, second = cut(cluster(), "a", 2_000), cut(cluster(), "b", 2_000)
    listing = Listing()
    for part in first[:-1]:
        listing.add(part)
    for part in second[:-1]:
        assert listing.add(part) is None
    assert listing.add(second[-1]) == cluster()


def test_an_empty_fleet_is_a_list_too() -> None:
    (part,) = cut({}, "a")
    assert Listing().add(part) == {}
