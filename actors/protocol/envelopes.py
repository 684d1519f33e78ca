"""Messages on the wire: several in one entry, in msgpack, checked here and nowhere behind.

An entry has the fields ``batch`` (a msgpack array of envelopes), ``traceparent`` and ``tracestate`` (W3C, absent
without a trace) and, on the decisions stream, ``revision``, which the broker counts; it replaces the envelope's.
An envelope is a map of ``version``, ``uid``, ``kind``, ``revision``, ``body`` and, for a message with a trace of its
own, ``traceparent``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgpack
import msgspec
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from actors.broker.bus import DeadLetter, Entry
from actors.documents.messages import one_sentence
from actors.documents.safe_msgpack import (
    DECISION_LIMITS,
    WIRE_LIMITS,
    NotPacked,
    WireLimits,
    deeper_than,
    unpacked,
    whole_number,
)
from actors.protocol.bodies import DECISION_KINDS, EVENT_KINDS, VERSION, Number


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send; ``body`` is a model, or the same as a plain mapping."""

    kind: str
    uid: str
    revision: int
    body: BaseModel | Mapping[str, Any]
    traceparent: str = ""


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message that was read and is valid.

    Attributes
    ----------
    uid, revision
        The object that it is about, and the version of that object; a revision not above the last one is old news.
    body
        The body, as the model of its kind.
    entry, index
        Id of its entry, and its position there.
    carrier
        Trace context of the sender.
    """

    kind: str
    uid: str
    revision: int
    body: BaseModel
    entry: str
    index: int
    carrier: Mapping[str, str] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """A message that is not valid, or a whole entry with index -1: the reason, and the bytes."""

    reason: str
    raw: bytes
    stream: str
    entry: str
    index: int = -1

    def letter(self) -> DeadLetter:
        """The letter for the dead-letter stream."""
        return DeadLetter(self.stream, self.entry, self.index, self.reason, self.raw)


class TooLarge(ValueError):
    """A message that cannot be sent, because it alone exceeds the limit of an entry."""


class _Envelope(BaseModel):
    """The fields that messages of all kinds have."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    uid: Annotated[str, Field(min_length=1, max_length=512)]
    revision: Number
    body: dict[str, Any]
    traceparent: Annotated[str, Field(max_length=128)] = ""


_ENVELOPE = TypeAdapter(_Envelope)
#: The name of a writer has at most this many bytes.
WRITER_BYTES = 128


def pack(
    messages: Iterable[Outgoing], carrier: Mapping[str, str] | None = None, limits: WireLimits = WIRE_LIMITS
) -> list[dict[str, bytes]]:
    """Pack messages, in order, into the fields of as few entries as the limits allow.

    Raises
    ------
    TooLarge
        If one message alone exceeds the limit.
    """
    trace = {name: value.encode() for name, value in (carrier or {}).items() if name in ("traceparent", "tracestate")}
    allowed = limits.entry_bytes - sum(map(len, trace.values())) - len(_array_head(limits.messages))
    entries: list[dict[str, bytes]] = []
    held: list[bytes] = []
    size = 0
    for message in messages:
        packed: bytes = msgpack.packb(_envelope(message))
        if len(packed) > allowed:
            raise TooLarge(f"{message.kind} of {message.uid!r}: expected at most {allowed} bytes, found {len(packed)}")
        if held and (size + len(packed) > allowed or len(held) == limits.messages):
            entries.append({"batch": _array_head(len(held)) + b"".join(held), **trace})
            held, size = [], 0
        held.append(packed)
        size += len(packed)
    if held:
        entries.append({"batch": _array_head(len(held)) + b"".join(held), **trace})
    return entries


def pack_decision(decision: Outgoing, carrier: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """One decision as the fields of its entry; ``ledger.Record.decision`` takes it.

    Its lists and maps are there even where they are empty, so that a reader finds each one; what would be null
    is left out.
    """
    body = decision.body
    if isinstance(body, BaseModel):
        told = _plain(body)
        rest = type(body).model_fields.keys() - told.keys()
        told |= body.model_dump(mode="json", include=set(rest), exclude_none=True)
        decision = replace(decision, body=told)
    (entry,) = pack([decision], carrier, DECISION_LIMITS)
    return entry


def decode_events(entry: Entry, limits: WireLimits = WIRE_LIMITS) -> list[Message | RefusedMessage]:
    """The messages of an entry of the events stream, in order, valid or refused; it never raises."""
    return list(_decode(entry, EVENT_KINDS, limits))


def decode_decisions(entry: Entry) -> list[Message | RefusedMessage]:
    """The same for the decisions stream; the revision is the ledger's."""
    return list(_decode(entry, DECISION_KINDS, DECISION_LIMITS))


def decisions_in(entries: Iterable[Entry]) -> Iterator[Message]:
    """What some entries of the decisions stream say, without messages that are refused."""
    return (one for entry in entries for one in decode_decisions(entry) if isinstance(one, Message))


def _decode(
    entry: Entry, kinds: Mapping[str, type[BaseModel]], limits: WireLimits
) -> Iterator[Message | RefusedMessage]:
    batch = entry.fields.get("batch", b"")
    items = _items(entry, limits)
    if isinstance(items, str):
        yield RefusedMessage(items, batch or msgpack.packb(dict(entry.fields)), entry.stream, entry.id)
        return
    ledger_revision, carrier = whole_number(entry.fields.get("revision", b"")), entry.carrier
    deep = f"message: expected at most {limits.depth} levels of nesting, found more"
    some_deep = deeper_than(items, limits.depth + 1)
    for index, item in enumerate(items):
        body = deep if some_deep and deeper_than(item, limits.depth) else _checked(item, kinds)
        if isinstance(body, str):
            yield RefusedMessage(body, _raw(item, batch), entry.stream, entry.id, index)
            continue
        revision = item["revision"] if ledger_revision is None else ledger_revision
        own = item.get("traceparent")
        traced = {"traceparent": own} if own else carrier
        yield Message(item["kind"], item["uid"], revision, body, entry.id, index, traced)


def _items(entry: Entry, limits: WireLimits) -> list[Any] | str:
    """The undecoded messages of an entry, or why the entry is refused."""
    size = sum(map(len, entry.fields.values()))
    if size > limits.entry_bytes:
        return f"entry: expected at most {limits.entry_bytes} bytes, found {size}"
    batch = entry.fields.get("batch")
    if batch is None:
        return f"entry: expected a field 'batch', found {', '.join(sorted(entry.fields)) or 'none'}"
    try:
        items = unpacked(batch)
    except NotPacked as refusal:
        return f"batch: expected msgpack, found something else: {refusal}"
    if not isinstance(items, list):
        return f"batch: expected an array of messages, found {type(items).__name__}"
    if len(items) > limits.messages:
        return f"batch: expected at most {limits.messages} messages, found {len(items)}"
    return items


def _checked(item: Any, kinds: Mapping[str, type[BaseModel]]) -> BaseModel | str:
    """The body of a message if body and envelope are valid, or why the message is refused."""
    if not isinstance(item, dict):
        return f"message: expected a map, found {type(item).__name__}"
    version, kind = item.get("version"), item.get("kind")
    # The version is checked first: an envelope of another version may have any form. True does not count as 1.
    if type(version) is not int or version != VERSION:
        return f"version: expected {VERSION}, found {str(version)[:40]!r}"
    model = kinds.get(kind) if isinstance(kind, str) else None
    if model is None:
        return f"kind: expected one of {', '.join(kinds)}, found {str(kind)[:80]!r}"
    try:
        _ENVELOPE.validate_python(item)
    except ValidationError as refusal:
        return one_sentence(refusal)
    try:
        # Documents refuse unknown keys in a cluster file; on the wire they are ignored, so that writers may be newer.
        return model.model_validate(item["body"], extra="ignore")
    except ValidationError as refusal:
        return one_sentence(refusal, root="body")


def _envelope(message: Outgoing) -> dict[str, Any]:
    body = message.body
    plain = _plain(body) if isinstance(body, BaseModel) else dict(body)
    envelope: dict[str, Any] = {
        "version": VERSION, "uid": message.uid, "kind": message.kind, "revision": message.revision, "body": plain,
    }  # fmt: skip
    if message.traceparent:
        envelope["traceparent"] = message.traceparent
    return envelope


def _plain(body: BaseModel) -> dict[str, Any]:
    """A body without its defaults: they are part of the version. A null that means something is no default."""
    return body.model_dump(mode="json", exclude_defaults=True)


def _array_head(length: int) -> bytes:
    """The bytes with which a msgpack array of ``length`` items begins."""
    packer = msgpack.Packer(autoreset=False)
    packer.pack_array_header(length)
    head: bytes = packer.bytes()
    return head


def _raw(item: Any, batch: bytes) -> bytes:
    """The bytes of a message; if it is too deep to be packed again, the first bytes of its batch."""
    try:
        packed: bytes = msgpack.packb(item)
    except ValueError:
        return batch[:1024]
    return packed
