"""Of a message that is right, each key is broken in turn: what is refused is refused whole, and names the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest

from actors.broker.bus import DECISIONS, EVENTS, Entry
from actors.protocol.bodies import DECISION_KINDS, EVENT_KINDS
from actors.protocol.envelopes import Message, RefusedMessage, decode_decisions, decode_events

Path = tuple[str | int, ...]
EXPRESSION = {"key": "k", "operator": "In", "values": ["v"]}
TASK = {
    "name": "t", "count": 2, "index": 1, "role": "r", "subgroup": "s", "request": {"cpu": "1"}, "card_request": "1Gi",
    "priority": 1, "preemptible": True, "preemption_policy": "Never", "gone_when_evicted": True, "grace_s": 1.0,
    "status": "Pending", "incarnation": 1, "nominated_node": "n", "nominated_card": "c", "labels": {"a": "b"},
    "node_selector": {"a": "b"}, "node_affinity": [[EXPRESSION]], "created": 1.0, "scheduling_gated": False,
    "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
    "pod_anti_affinity": [{
        "topology_key": "k", "match_labels": {"a": "b"}, "match_expressions": [EXPRESSION], "namespaces": ["x"],
    }],
}  # fmt: skip
GROUP = {
    "name": "g", "namespace": "d", "queue": "q", "priority": 1, "preemptible": True, "preemption_policy": "Never",
    "preemption_delay": 1.0, "min_available": 1, "min_resources": {"cpu": 1}, "phase": "Pending", "created": 1.0,
    "roles": {"r": {"min": 1}}, "gang_group": ["d/x"], "match_policy": "once-satisfied", "wait_seconds": 1.0,
    "topology": {"required": "l", "preferred": "m", "layers": ["m"], "multiples": {"l": 2}, "near": "x"},
    "min_subgroups": 1, "started": 1.0, "stale_since": 1.0, "stale_grace_seconds": 1.0, "last_checkpoint": 1.0,
    "subgroups": [
        {"name": "s", "min_available": 1, "topology": {"required": "l"}},
        {"name": "u", "min_subgroups": 1, "children": [{"name": "v", "min_available": 1}]},
    ],
    "tasks": [TASK],
}  # fmt: skip
PLACE = {"task": "d/t", "node": "n", "card": "c", "incarnation": 1}
ON = {"epoch": 1, "revision": 2, "at": 3.0}
BODIES: dict[str, dict[str, Any]] = {
    "fleet_listed": {"list_id": "l", "part": 0, "parts": 1, "cluster": {}},
    "node_upserted": {
        "name": "n", "allocatable": {"cpu": "1"}, "labels": {"a": "b"}, "unschedulable": True,
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "cards": [{"name": "c", "capacity": "8Gi"}],
    },
    "node_removed": {"node": "n"},
    "topology_changed": {"topology": {
        "levels": ["rack"], "domains": [{"name": "r", "level": "rack", "parent": None, "nodes": ["n"]}],
    }},
    "queue_upserted": {
        "name": "q", "parent": "p", "priority": 1, "weight": 1.0, "over_quota_weight": 1.0, "usage": 0.5,
        "guarantee": {"cpu": 1}, "deserved": {"cpu": 1}, "capability": {"cpu": 1}, "reclaimable": True,
        "state": "Open", "preempt_min_runtime": 1.0, "reclaim_min_runtime": 1.0, "created": 1.0,
    },
    "queue_removed": {"queue": "q"},
    "priority_class_upserted": {"name": "c", "value": 1, "preemption_policy": "Never"},
    "podgroup_upserted": GROUP,
    "podgroup_removed": {"podgroup": "d/g"},
    "task_upserted": {"podgroup": "d/g", "task": TASK},
    "task_started": {"task": "d/t", "node": "n", "card": "c", "incarnation": 1, "at": 1.0},
    "task_terminating": {"task": "d/t", "incarnation": 1, "until": 1.0},
    "task_ended": {"task": "d/t", "outcome": "Failed", "incarnation": 1, "replaced": True},
    "budget_upserted": {"name": "b", "namespace": "d", "match_labels": {"a": "b"}, "disruptions_allowed": 1},
    "budget_removed": {"budget": "d/b"},
    "plan_committed": {
        "plan_id": "p", "epoch": 1, "action": "preempt", "purpose": "preempt", "preemptor": "d/g", "queue": "q",
        "domain": "r", "nominations": [PLACE], "bindings": [PLACE], "planned_on": {**ON, "paused": ["d/g"]},
        "evictions": [{"task": "d/t", "incarnation": 1, "podgroup": "d/g", "node": "n", "grace_s": 1.0}],
        "condition": {"type": "t", "status": "True", "reason": "r", "message": "m"}, "cost": {"victims": 1},
        "overdue": [{"task": "d/t", "incarnation": 1, "avoided_until": 1.0}], "expires_at": 1.0, "replaces": "q",
        "judged_on": ON,
    },
    "plan_withdrawn": {"plan_id": "p", "epoch": 1, "reason": "r", "judged_on": ON},
    "domain_reserved": {
        "podgroup": "d/g", "domain": "r", "epoch": 1, "refusals": 1, "reason": "r", "expires_at": 1.0,
    },
    "domain_released": {"podgroup": "d/g", "epoch": 1, "reason": "r"},
    "resync_requested": {"reason": "r", "read": "1-1", "lost_after": 1},
}  # fmt: skip
ABSENT = object()
WRONG = (
    ABSENT, None, True, -1, 1.5, "x y/z/ü\n", "\0", "9" * 400, b"\xff", [], [[]], {}, {"a": {}}, float("nan"), 2**63,
    msgpack.Timestamp(1),
)  # fmt: skip


def paths(value: Any, before: Path = ()) -> Iterator[Path]:
    """Where each key and each item of a message is."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*before, key)
        yield from paths(inner, (*before, key))


def broken(message: dict[str, Any], path: Path, value: object) -> dict[str, Any] | None:
    """The message with another value there; None where an item of a list would be absent."""
    made: Any = msgpack.unpackb(msgpack.packb(message))  # nothing in it stands in two places
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if value is not ABSENT:
        holder[path[-1]] = value
    elif isinstance(holder, dict):
        del holder[path[-1]]
    else:
        return None
    return dict(made)


def decoded(message: dict[str, Any], kind: str) -> Message | RefusedMessage:
    """What comes off the wire, between two messages that are right."""
    whole = {"version": 1, "uid": "u", "kind": kind, "revision": 1, "body": BODIES[kind]}
    stream, decode = (DECISIONS, decode_decisions) if kind in DECISION_KINDS else (EVENTS, decode_events)
    before, found, behind = decode(Entry(stream, "7-0", {"batch": msgpack.packb([whole, message, whole])}))
    assert isinstance(before, Message)
    assert isinstance(behind, Message)
    return found


def test_every_kind_is_broken() -> None:
    assert BODIES.keys() == {*EVENT_KINDS, *DECISION_KINDS}


@pytest.mark.parametrize("kind", BODIES)
def test_a_message_with_a_broken_key_is_refused_by_itself_and_by_the_path_of_the_key(kind: str) -> None:
    message = {"version": 1, "uid": "u", "kind": kind, "revision": 1, "traceparent": "t", "body": BODIES[kind]}
    assert isinstance(decoded(message, kind), Message)
    refused = 0
    for path in paths(message):
        for value in WRONG:
            made = broken(message, path, value)
            found = decoded(made, kind) if made is not None else None
            if isinstance(found, RefusedMessage):
                refused += 1
                said = re.sub(r"\[(\w+)\]", r".\1", found.reason.partition(": expected")[0])
                beside = ".".join(map(str, path[:-1]))  # another key may say that it needs this one
                whole = ".".join(map(str, path))
                named = whole.startswith(said) or said.startswith(whole) or (len(path) > 2 and said.startswith(beside))
                assert named, (path, value, found.reason)
                assert (found.entry, found.index) == ("7-0", 1)
    assert refused > 40
