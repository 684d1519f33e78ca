"""The port to the broker's streams: the methods that roles use, and the values that they return.

A stream is an append-only log of entries with increasing ids. Readers are either *group members* (each entry goes to
one member, is pending until acknowledged, and is taken over when its member dies) or *followers* (a range from an id
on, for recovery and for the live view). `memory_bus` and `redis_bus` implement it, with one contract test-suite.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

EVENTS = "events"
DECISIONS = "decisions"
SNAPSHOTS = "snapshots"
DEAD = "dead"
SPANS = "spans"
STARVING = "starving"
SERVICES = "services"
FULFILLED = "fulfilled"
STREAMS = (EVENTS, DECISIONS, SNAPSHOTS, DEAD, SPANS, STARVING, SERVICES, FULFILLED)
#: What a service that runs as a shadow reads and writes instead, so that no connector carries out what it decides.
SHADOWS = {stream: f"shadow-{stream}" for stream in (DECISIONS, SNAPSHOTS, FULFILLED)}

#: The id before every entry.
START = "0-0"

#: The most trace context that the W3C standard allows.
CARRIED_BYTES = 512

#: At most how many bytes of refused input a dead letter keeps; it also states the true size.
RAW_LIMIT_BYTES = 65_536

_FLEET = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ID = re.compile(r"(\d+)-(\d+)")


class BrokerUnreachable(Exception):
    """The broker did not answer. A write may or may not have happened: repeat it only with the same key."""


class BrokerRefused(Exception):
    """The broker answered, but cannot do what is needed (too old, no permission); the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a stream as it came from the broker, undecoded.

    Attributes
    ----------
    id
        ``milliseconds-sequence`` of the broker's clock; increasing within a stream.
    fields
        Field name to raw bytes.
    """

    stream: str
    id: str
    fields: Mapping[str, bytes]

    @property
    def carrier(self) -> dict[str, str]:
        """The W3C trace context of the entry (``traceparent``, ``tracestate``), empty where it has none.

        Values longer than the standard allows are left out.
        """
        found = ((name, self.fields.get(name, b"")) for name in ("traceparent", "tracestate"))
        return {name: value.decode("ascii", "replace") for name, value in found if 0 < len(value) <= CARRIED_BYTES}


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Refused input, as it is written to the dead-letter stream.

    Attributes
    ----------
    index
        Position of the refused event in its entry, -1 for the entry as a whole. With stream and entry it is the
        letter's identity: recording it twice changes nothing.
    """

    stream: str
    entry: str
    index: int
    reason: str
    raw: bytes

    def fields(self) -> dict[str, bytes]:
        """The letter as stream fields, the raw input cut to `RAW_LIMIT_BYTES`."""
        return {
            "stream": self.stream.encode(), "entry": self.entry.encode(), "index": str(self.index).encode(),
            "reason": self.reason.encode(), "bytes": str(len(self.raw)).encode(), "raw": self.raw[:RAW_LIMIT_BYTES],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a stream holds: first and last id (`START` where it holds none), entries now and ever added."""

    first: str = START
    last: str = START
    length: int = 0
    added: int = 0


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is behind; ages are by the broker's clock.

    Attributes
    ----------
    undelivered, pending
        Entries not yet handed out, and those handed out but unacknowledged.
    behind_ms
        Age of the oldest that was not handed out.
    held_ms
        Age of the oldest that is unacknowledged, handed out or not: trimming waits for it.
    """

    undelivered: int = 0
    pending: int = 0
    behind_ms: int = 0
    held_ms: int = 0


class Bus(Protocol):
    """Streams of one fleet. Every method may raise `BrokerUnreachable`; all but `publish` may be repeated."""

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        """Append one entry and return its id.

        Parameters
        ----------
        cap
            Keep only about the newest `cap` entries; for streams of reports, which may lose the oldest.
        insist
            Repeat until it arrives; only where a duplicate is harmless, as with events.
        """
        ...

    def publish_all(self, stream: str, entries: Sequence[Mapping[str, bytes]], *, cap: int | None = None) -> list[str]:
        """Append entries with one answer for all, and return their ids; insists, as `publish` may."""
        ...

    def join(self, stream: str, group: str) -> None:
        """Create the group, which reads from the first entry on; an existing group stays as it is."""
        ...

    def read(
        self, stream: str, group: str, consumer: str, *, count: int = 100, block_ms: int = 0, pending: bool = False
    ) -> list[Entry]:
        """Hand this member new entries, waiting up to `block_ms` (0: not at all); or those pending for it already."""
        ...

    def acknowledge(self, stream: str, group: str, ids: Sequence[str]) -> int:
        """Mark entries as done for the group; returns how many were pending."""
        ...

    def cover(self, stream: str, group: str, *, upto: str) -> None:
        """Mark everything up to an id as done, whichever consumer was handed it; the group reads on behind it."""
        ...

    def recover(self, stream: str, group: str, consumer: str, *, idle_ms: int, count: int = 100) -> list[Entry]:
        """Take over what other members left pending for at least `idle_ms`."""
        ...

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        """Write dead letters, each once even if repeated; returns how many were new."""
        ...

    def follow(self, stream: str, after: str, *, count: int = 100, block_ms: int = 0) -> list[Entry]:
        """Entries after an id, without a group, waiting up to `block_ms` for the first."""
        ...

    def follow_any(self, after: Mapping[str, str], *, count: int = 100, block_ms: int = 0) -> Mapping[str, list[Entry]]:
        """What `follow` gives of several streams, all of it as of one moment; it waits for the first entry of any.

        At most `count` entries of each stream.
        """
        ...

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        """The last entries (below `before`, where given), newest first."""
        ...

    def trim(self, stream: str, *, covered: str) -> int:
        """Drop entries below `covered` (a checkpoint's cut) that every group has acknowledged; returns how many.

        A group does not hold back trimming once its oldest unacknowledged entry is older than entries are to be kept.
        """
        ...

    def bounds(self, stream: str) -> Bounds:
        """First and last id, length and entries ever added."""
        ...

    def lags(self, stream: str) -> Mapping[str, Lag]:
        """How far behind each group is, by name; empty for a stream that does not exist."""
        ...

    def reached(self, stream: str, group: str) -> str:
        """The last entry that was handed to a group; `START` for a group or stream that does not exist."""
        ...

    def close(self) -> None:
        """Close every connection. A closed bus is not used again."""
        ...


@cache
def stream_key(fleet: str, stream: str) -> str:
    """The broker's key of a stream, ``clearway:{fleet}:events``; the braces keep a fleet in one cluster slot.

    Raises
    ------
    ValueError
        For a fleet that is not a DNS label (lower-case letters, digits, dashes), or a stream that is not one of ours.
    """
    if not _FLEET.fullmatch(fleet):
        raise ValueError(f"fleet must be a DNS label (a-z, 0-9, dashes, at most 63 characters), found {fleet!r}")
    if stream not in (*STREAMS, *SHADOWS.values()):
        raise ValueError(f"stream must be one of {', '.join(STREAMS)}, found {stream!r}")
    return f"clearway:{{{fleet}}}:{stream}"


def id_order(entry_id: str) -> tuple[int, int]:
    """An entry id as a comparable pair (milliseconds, sequence)."""
    match = _ID.fullmatch(entry_id)
    if match is None:
        raise ValueError(f"an entry id looks like 1700000000000-0, found {entry_id!r}")
    return int(match[1]), int(match[2])


def from_newest(bus: Bus, stream: str, *, page: int = 200) -> Iterator[Entry]:
    """All entries of a stream, the newest first, read a page at a time."""
    before: str | None = None
    while entries := bus.newest(stream, count=page, before=before):
        yield from entries
        before = entries[-1].id


def has_gap(bounds: Bounds, after: str) -> bool:
    """Whether entries after `after` are missing from the stream: trimmed away, or the stream was lost and began anew.

    Trimming keeps the last acknowledged entry of every group as an anchor, so a reader that acknowledged `after` finds
    the stream's first entry at or before it.
    """
    if id_order(after) > id_order(bounds.last) or (bounds.length == 0 and id_order(after) < id_order(bounds.last)):
        return True
    trimmed = bounds.added > bounds.length
    return trimmed and id_order(bounds.first) > id_order(after)


@dataclass(frozen=True, slots=True)
class Outage:
    """One failed attempt to reach the broker, to be reported."""

    where: str
    reason: str
    retry_in_s: float
    attempt: int

    def __str__(self) -> str:
        return f"broker unreachable at {self.where} ({self.reason}), next try in {self.retry_in_s:.1f} s"
