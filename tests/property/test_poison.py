"""Whatever arrives, the ingestor goes on: what is wrong is a dead letter with its reason, and nothing else happens."""

from __future__ import annotations

from typing import Any

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from actors.broker.bus import DEAD, EVENTS, START
from actors.ingestion.ingestor import Ingestor
from actors.protocol.envelopes import Message, decode_events
from tests.support.told_world import World, drained

NODE = {"name": "n9", "allocatable": {"cpu": "32", "memory": "1Gi", "nvidia.com/gpu": 8}, "labels": {"zone": "a"},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "unschedulable": False}  # fmt: skip
TASK = {"name": "a", "count": 2, "request": {"cpu": "500m"}, "status": "Pending", "node_selector": {"zone": "a"},
        "tolerations": [{"key": "k", "operator": "Exists"}], "labels": {"app": "x"}, "priority": 3}  # fmt: skip
GROUP = {"name": "g9", "namespace": "default", "queue": "ml", "min_available": 1, "tasks": [TASK],
         "subgroups": [{"name": "s", "min_available": 1}], "roles": {"r": {"min": 1}}, "created": 1.0}  # fmt: skip
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("node_upserted", NODE),
    ("node_upserted", {**NODE, "name": "n0"}),
    ("node_removed", {"node": "n0"}),
    ("podgroup_upserted", GROUP),
    ("podgroup_upserted", {**GROUP, "name": "train"}),
    ("podgroup_removed", {"podgroup": "default/train"}),
    ("task_upserted", {"podgroup": "default/train", "task": TASK}),
    ("task_started", {"task": "default/train-0", "node": "n1", "incarnation": 0, "at": 5.0}),
    ("task_terminating", {"task": "default/web-0", "incarnation": 0, "until": 9.0}),
    ("task_ended", {"task": "default/web-0", "outcome": "Failed", "incarnation": 0, "replaced": True}),
    ("queue_upserted", {"name": "ml", "deserved": {"cpu": 8}, "capability": {"cpu": "unlimited"}, "weight": 2.0}),
    ("queue_upserted", {"name": "new", "parent": "ml"}),
    ("priority_class_upserted", {"name": "high", "value": 1000}),
    ("budget_upserted", {"name": "b", "namespace": "default", "match_labels": {}, "disruptions_allowed": 1}),
    ("topology_changed", {"topology": {"levels": ["rack"], "labels": {"rack": "zone"}}}),
    ("topology_changed", {"topology": {"levels": ["rack"], "domains": [{"name": "r0", "level": "rack", "nodes": []}]}}),
    ("fleet_listed", {"list_id": "x", "part": 0, "parts": 1, "cluster": {
        "nodes": [NODE], "queues": [{"name": "ml"}], "podgroups": [GROUP], "priority_classes": [],
        "topology": {"levels": ["rack"], "labels": {"rack": "zone"}}, "disruption_budgets": []}}),
]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=4)
    | st.binary(max_size=3)
    | st.sampled_from([
        "unlimited", "1e9999", "9" * 70, "default/web-0", "default/train-0", "n0", "ml", "train", 2**31 - 1, 2**53,
        -0.0, 1e308, "\x00", "a/b", "", [], {}, msgpack.Timestamp(1), "g9", "rack", "Running", "Terminating",
    ])
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with each of its keys."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *places(value[key]))]


@st.composite
def mutated(draw: st.DrawFn, revision: int) -> dict[str, Any]:
    """A message that was right, and then up to three of its values were put out of joint."""
    kind, body = draw(st.sampled_from(BODIES))
    message = {"version": 1, "uid": f"u-{kind}", "kind": kind, "revision": revision, "body": body}
    message = msgpack.unpackb(msgpack.packb(message))  # a copy down to the last list
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(st.sampled_from(places(message["body"]) or [(message, "body")]))
        match draw(st.integers(0, 3)):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(holder[key])
            case 2 if isinstance(holder, dict):
                holder[draw(st.text(max_size=4))] = draw(ANYTHING)
            case _:
                holder[key] = draw(ANYTHING)
        if not isinstance(message.get("body"), dict):
            break
    return message


def small(value: Any) -> bool:
    """Whether no task stands for so many that a test would only measure how long they take."""
    if isinstance(value, dict):
        count = value.get("count")
        return not (isinstance(count, int) and count > 1_000) and all(map(small, value.values()))
    return all(map(small, value)) if isinstance(value, list) else True


def told(ingestor: Ingestor, world: World, items: list[Any], **fields: bytes) -> None:
    """Hand it one entry and let it fold."""
    world.bus.publish(EVENTS, {"batch": msgpack.packb(items), **fields})
    drained(ingestor)


@given(st.data())
def test_messages_out_of_joint_end_nothing(data: st.DataObject) -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    for turn in range(3):
        messages = [data.draw(mutated(10_000 + 10 * turn + at)) for at in range(data.draw(st.integers(1, 4)))]
        told(ingestor, world, [one for one in messages if small(one)])
    world.bus.publish(EVENTS, {"batch": data.draw(st.binary(max_size=40)), "sequence": b"9" * 5_000})
    drained(ingestor)
    refused = [one for entry in world.bus.follow(EVENTS, START, count=1_000) for one in decode_events(entry)
               if not isinstance(one, Message)]  # fmt: skip
    letters = {(letter.fields["entry"].decode(), int(letter.fields["index"]))
               for letter in world.bus.follow(DEAD, START, count=1_000)}  # fmt: skip
    assert {(one.entry, one.index) for one in refused} <= letters
    # What it holds can be written down and read again, so a start after any of this goes on from there.
    ingestor.checkpoint()
    again = world.ingestor("second")
    assert again.snapshot.revision == ingestor.snapshot.revision
