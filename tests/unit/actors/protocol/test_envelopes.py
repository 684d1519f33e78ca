"""What goes on the wire comes off it, and what is wrong is refused by itself with its reason."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.broker.bus import DECISIONS, EVENTS, Entry
from actors.documents.safe_msgpack import WireLimits
from actors.protocol.bodies import Eviction, Nomination, PlanCommitted, TaskEnded, TaskStarted
from actors.protocol.envelopes import (
    Message,
    Outgoing,
    RefusedMessage,
    TooLarge,
    decode_decisions,
    decode_events,
    pack,
    pack_decision,
)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"
STARTED: dict[str, Any] = {
    "version": 1, "uid": "t", "kind": "task_started", "revision": 2, "body": {"task": "default/a", "node": "n0"}
}  # fmt: skip


def entry(*items: object, **fields: bytes) -> Entry:
    return Entry(EVENTS, "7-0", {"batch": msgpack.packb(list(items)), **fields})


def reason(*items: object, limits: WireLimits | None = None) -> str:
    (refused,) = decode_events(entry(*items), limits or WireLimits())
    assert isinstance(refused, RefusedMessage)
    return refused.reason


def test_messages_come_back_in_order_from_one_entry() -> None:
    sent = [
        Outgoing("task_started", "a", 1, TaskStarted(task="default/a", node="n0", incarnation=2)),
        Outgoing("task_ended", "b", 2, {"task": "default/b", "outcome": "Failed"}),
    ]
    (fields,) = pack(sent, {"traceparent": TRACE})
    read = decode_events(Entry(EVENTS, "7-0", fields))
    carrier = {"traceparent": TRACE}
    assert read == [
        Message("task_started", "a", 1, TaskStarted(task="default/a", node="n0", incarnation=2), "7-0", 0, carrier),
        Message("task_ended", "b", 2, TaskEnded(task="default/b", outcome="Failed"), "7-0", 1, carrier),
    ]


def test_a_message_may_have_a_trace_of_its_own() -> None:
    own = TRACE.replace("0af7", "1111")
    (fields,) = pack([Outgoing("task_started", "a", 1, STARTED["body"], own)], {"traceparent": TRACE})
    (message,) = decode_events(Entry(EVENTS, "7-0", fields))
    assert isinstance(message, Message)
    assert message.carrier == {"traceparent": own}


def test_many_messages_take_as_few_entries_as_the_limits_allow() -> None:
    sent = [Outgoing("task_started", f"t{n}", n, STARTED["body"]) for n in range(100)]
    limits = WireLimits(entry_bytes=2_000, messages=15)
    entries = pack(sent, {"traceparent": TRACE}, limits)
    assert all(sum(map(len, fields.values())) <= 2_000 for fields in entries)
    assert len(entries) == 7
    read = [message for fields in entries for message in decode_events(Entry(EVENTS, "7-0", fields), limits)]
    assert [message.uid for message in read if isinstance(message, Message)] == [f"t{n}" for n in range(100)]


def test_a_message_larger_than_an_entry_is_not_sent() -> None:
    big = Outgoing("task_started", "a", 1, {"task": "x" * 3_000, "node": "n"})
    with pytest.raises(TooLarge, match=r"task_started of 'a': expected at most \d+ bytes, found 3\d\d\d"):
        pack([big], limits=WireLimits(entry_bytes=2_000))


def test_a_decision_is_read_with_the_ledgers_revision() -> None:
    plan = PlanCommitted(
        plan_id="p", epoch=3, action="preempt", evictions=(Eviction(task="default/a", incarnation=1, grace_s=30.0),),
        nominations=(Nomination(task="default/b", node="n0"), Nomination(task="default/c", node=None)),
        cost={"victims": 1, "lost_work": 2.5}, explanation={"domains": [1, {"why": "bound"}]}, expires_at=17.0,
    )  # fmt: skip
    fields = {**pack_decision(Outgoing("plan_committed", "p", 0, plan)), "revision": b"41"}
    (message,) = decode_decisions(Entry(DECISIONS, "7-0", fields))
    assert isinstance(message, Message)
    assert (message.body, message.revision) == (plan, 41)


def test_a_decision_of_many_evictions_is_one_entry() -> None:
    evictions = [{"task": f"default/a-long-name-of-a-training-job-{n}", "incarnation": 1} for n in range(20_000)]
    body = {"plan_id": "p", "epoch": 1, "action": "preempt", "evictions": evictions}
    (message,) = decode_decisions(Entry(DECISIONS, "7-0", pack_decision(Outgoing("plan_committed", "p", 0, body))))
    assert isinstance(message, Message)
    assert isinstance(message.body, PlanCommitted)
    assert len(message.body.evictions) == 20_000


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "version: expected 1, found '2'"),
        ({"version": True}, "version: expected 1, found 'True'"),
        ({"kind": "task_vanished"}, "kind: expected one of fleet_listed, "),
        ({"kind": ["task_started"]}, "kind: expected one of "),
        ({"uid": ""}, 'uid: expected text that is not empty, found ""'),
        ({"revision": -1}, "revision: expected at least 0, found -1"),
        ({"revision": "2"}, 'revision: expected a whole number, found "2"'),
        ({"body": {"task": "default/a"}}, "body.node: expected a value, found nothing"),
        ({"body": {"task": 4, "node": "n0"}}, "body.task: expected text, found 4"),
        ({"body": {**STARTED["body"], "at": float("nan")}}, "body.at: expected a finite number"),
        ({"body": []}, "body: expected a mapping, found []"),
    ],
)
def test_a_wrong_message_is_refused_with_its_reason_and_the_others_go_on(change: dict, why: str) -> None:
    wrong = {**STARTED, **change}
    before, refused, after = decode_events(entry(STARTED, wrong, STARTED))
    assert isinstance(before, Message)
    assert isinstance(after, Message)
    assert isinstance(refused, RefusedMessage)
    assert refused.reason.startswith(why)
    assert msgpack.unpackb(refused.raw).keys() == wrong.keys()
    letter = refused.letter()
    assert (letter.stream, letter.entry, letter.index, letter.reason) == (EVENTS, "7-0", 1, refused.reason)


def test_keys_that_are_not_known_pass() -> None:
    newer = {**STARTED, "signature": "x", "body": {**STARTED["body"], "zone": "a"}}
    (message,) = decode_events(entry(newer))
    assert isinstance(message, Message)
    assert message.body == TaskStarted(task="default/a", node="n0")


def test_keys_that_are_not_known_pass_inside_documents_too() -> None:
    body = {"podgroup": "default/g", "colour": 1, "task": {"name": "a", "request": {"cpu": 1}, "mood": "good"}}
    (message,) = decode_events(entry({**STARTED, "kind": "task_upserted", "body": body}))
    assert isinstance(message, Message), message


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "entry: expected a field 'batch', found none"),
        ({"bacth": b""}, "entry: expected a field 'batch', found bacth"),
        ({"batch": b""}, "batch: expected msgpack"),
        ({"batch": b"\xc1"}, "batch: expected msgpack"),
        ({"batch": b"\x91" * 5_000}, "batch: expected msgpack"),
        ({"batch": msgpack.packb([1]) + b"\x00"}, "batch: expected msgpack"),
        ({"batch": msgpack.packb(b"\xff\xfe").replace(b"\xc4", b"\xd9")}, "batch: expected msgpack"),
        ({"batch": msgpack.packb([msgpack.ExtType(5, b"")])}, "batch: expected msgpack, found something else: ext"),
        ({"batch": msgpack.packb([{1: 2}])}, "batch: expected msgpack"),
        ({"batch": msgpack.packb({"a": 1})}, "batch: expected an array of messages, found dict"),
    ],
)  # fmt: skip
def test_an_entry_that_holds_no_messages_is_refused_whole(fields: dict[str, bytes], why: str) -> None:
    (refused,) = decode_events(Entry(EVENTS, "7-0", fields))
    assert isinstance(refused, RefusedMessage)
    assert refused.reason.startswith(why)
    assert refused.index == -1


def test_an_entry_that_is_too_large_is_refused_unread() -> None:
    assert reason("x" * 3_000, limits=WireLimits(entry_bytes=2_000)) == "entry: expected at most 2000 bytes, found 3004"


def test_an_entry_of_too_many_messages_is_refused() -> None:
    assert reason(STARTED, STARTED, limits=WireLimits(messages=1)) == "batch: expected at most 1 messages, found 2"


def test_a_message_that_nests_too_deep_is_refused() -> None:
    nested: Any = {}
    for _ in range(40):
        nested = [nested]
    assert reason({**STARTED, "body": {"x": nested}}) == "message: expected at most 32 levels of nesting, found more"


def test_a_message_that_is_no_map_is_refused() -> None:
    assert reason(7) == "message: expected a map, found int"


@given(st.binary(max_size=200))
def test_no_bytes_at_all_make_the_decoder_fail(batch: bytes) -> None:
    assert all(isinstance(read, RefusedMessage) for read in decode_events(Entry(EVENTS, "7-0", {"batch": batch})))


SIMPLE = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    SIMPLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
KEYS = st.sampled_from(["version", "uid", "kind", "revision", "body", "traceparent"])


@given(st.dictionaries(KEYS, ANYTHING))
def test_no_values_at_all_make_the_decoder_fail(change: dict[str, Any]) -> None:
    (read,) = decode_events(entry({**STARTED, **change}))
    assert isinstance(read, Message | RefusedMessage)


def test_a_decision_carries_its_lists_and_maps_even_where_they_are_empty() -> None:
    plan = PlanCommitted(plan_id="p", epoch=3, action="allocate")
    (envelope,) = msgpack.unpackb(pack_decision(Outgoing("plan_committed", "p", 0, plan))["batch"])
    body = envelope["body"]
    assert {body[key] == [] for key in ("evictions", "nominations", "bindings", "overdue")} == {True}
    assert body["cost"] == body["explanation"] == {}
    assert {"condition", "replaces", "expires_at", "preemptor"} & body.keys() == set()
