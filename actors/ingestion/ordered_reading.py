"""Entries of both streams in one order, read by position.

A turn reads a bounded number of entries and bytes of each stream, however long the streams are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from actors.broker.bus import DECISIONS, EVENTS, START, Bounds, Bus, Entry, has_gap, id_order
from actors.broker.stream_order import Position, merged, positions

#: Entries read at once before their size is known.
_FIRST_READ = 8


@dataclass(slots=True)
class _EntriesRead:
    """Entries of one stream that were read, against the broker's own count of those that came.

    What is trimmed or deleted before it was read leaves no gap once later entries are read. So two looks at the stream
    are remembered, and once everything up to the second was read, as many entries must have been read between them as
    the broker has counted.

    Attributes
    ----------
    since, until
        What the stream held at the two looks.
    between, behind
        Number of entries that were read between the two, and behind the second.
    ended
        Whether the end of the stream was reached after the second look.
    """

    since: Bounds | None = None
    until: Bounds | None = None
    between: int = 0
    behind: int = 0
    ended: bool = False

    def read(self, entry: Entry) -> None:
        """An entry was read."""
        at = id_order(entry.id)
        if self.since is None or at <= id_order(self.since.last):
            return
        if self.until is None or at <= id_order(self.until.last):
            self.between += 1
        else:
            self.behind += 1

    def differs(self, now: Bounds, at: str) -> bool:
        """Whether other entries came than were read up to ``at``; takes the next look at the stream."""
        if self.since is None:
            self.since = now
            return False
        if self.until is None:
            self.until, self.ended = now, False
        if id_order(at) < id_order(self.until.last) and not self.ended:
            return False
        differs = self.between != self.until.added - self.since.added
        self.since, self.until, self.between, self.behind = self.until, None, self.behind, 0
        return differs


class OrderedReading:
    """The position in both streams, and the next entries.

    Parameters
    ----------
    entries
        Read at once from a stream, at most.
    read_bytes
        About this many bytes at once, judged by the sizes of the entries before.

    Attributes
    ----------
    at
        The last entry of each stream that was folded.
    """

    def __init__(self, bus: Bus, entries: int, read_bytes: int) -> None:
        self._bus, self._entries, self._read_bytes = bus, entries, read_bytes
        self.at = {EVENTS: START, DECISIONS: START}
        self._held: dict[str, list[Entry]] = {EVENTS: [], DECISIONS: []}
        self._count = dict.fromkeys(self.at, min(_FIRST_READ, entries))
        self._full = dict.fromkeys(self.at, False)
        self._counted = {stream: _EntriesRead() for stream in self.at}

    @property
    def behind(self) -> bool:
        """Whether there was more to read than one turn takes."""
        return any(self._full.values()) or any(self._held.values())

    def begin_at(self, covered: Mapping[str, str]) -> None:
        """Go on after what a checkpoint covers."""
        self.at.update(covered)

    def ends(self) -> dict[str, str]:
        """By stream, the last entry that came so far."""
        return {stream: self._bus.bounds(stream).last for stream in self.at}

    def has_reached(self, ends: Mapping[str, str]) -> bool:
        """Whether both streams are folded up to these entries."""
        return all(id_order(self.at[stream]) >= id_order(last) for stream, last in ends.items())

    def gaps(self) -> Iterator[str]:
        """Streams with entries that were trimmed before they were read."""
        return (stream for stream in self.at if self._gap(stream))

    def missed(self) -> bool:
        """Whether entries were trimmed before they were read; False if none was read yet."""
        return any(at != START and self._gap(stream) for stream, at in self.at.items())

    def _gap(self, stream: str) -> bool:
        """Whether entries of the stream were trimmed before they were read.

        While the entry that was read last is there, nothing behind it was trimmed. Bounds are asked for only without
        it: with them the broker sends the first entry as well, a large part of a list in the time after a start.
        """
        ms, sequence = id_order(self.at[stream])
        newest = self._bus.newest(stream, before=f"{ms}-{sequence + 1}")
        return not (newest and newest[0].id == self.at[stream]) and has_gap(self._bus.bounds(stream), self.at[stream])

    def lost(self) -> bool:
        """Whether a stream ends before what was read of it: the broker has lost entries."""
        return any(id_order(at) > id_order(self._bus.bounds(stream).last) for stream, at in self.at.items())

    def skipped(self) -> bool:
        """Whether entries came and went before they were read, as of the looks at the streams before; looks again."""
        free = [stream for stream in self.at if not self._held[stream]]
        differ = [self._counted[stream].differs(self._bus.bounds(stream), self.at[stream]) for stream in free]
        return any(differ)

    def next(self, block_ms: int) -> list[Entry]:
        """The next entries, see `_next`; they are counted."""
        entries = self._next(block_ms)
        for entry in entries:
            self._counted[entry.stream].read(entry)
        return entries

    def _next(self, block_ms: int) -> list[Entry]:
        """The next entries, up to a point before which no stream can get further entries.

        Decisions are read with events or after them. If there are none, none can come before the last event, which is
        that point.
        Otherwise it is the last decision, if events reach it before they are too many for one turn, or else the last
        event. What lies beyond that point is held for the next time.
        """
        events, decisions = self._read_both(block_ms) if not self.behind else self._read_on()
        if not decisions:
            self._held[EVENTS] = []
            return events
        behind = id_order(self.at[EVENTS])
        stand = positions(decisions, behind)
        events, horizon = self._up_to(stand[-1], events)
        now = sum(position <= horizon for position in stand)
        known = sum(id_order(entry.id) <= horizon for entry in events)
        self._held = {EVENTS: events[known:], DECISIONS: decisions[now:]}
        return merged(events[:known], decisions[:now], behind)

    def _up_to(self, horizon: Position, events: list[Entry]) -> tuple[list[Entry], Position]:
        """Events up to a position, or as many as one turn takes; and how far they reach."""
        while not events or id_order(events[-1].id) < horizon:
            if len(events) >= 2 * self._entries or size(events) >= 2 * self._read_bytes:
                return events, id_order(events[-1].id)
            more = self._read(EVENTS, events[-1].id if events else self.at[EVENTS])
            if not more:
                break
            events = [*events, *more]
        return events, horizon

    def _read_both(self, block_ms: int) -> tuple[list[Entry], list[Entry]]:
        """The next entries of both streams, waiting for the first of any."""
        count = min(self._count.values())
        found = self._bus.follow_any(self.at, count=count, block_ms=block_ms)
        for stream, entries in found.items():
            self._note(stream, entries, count)
        return found[EVENTS], found[DECISIONS]

    def _read_on(self) -> tuple[list[Entry], list[Entry]]:
        """What is held of both streams; where nothing is, the next entries, as many as a turn takes of that stream."""
        events, decisions = self._held[EVENTS], self._held[DECISIONS]
        if not events:
            events = self._read(EVENTS, self.at[EVENTS])
        if not decisions:
            decisions = self._read(DECISIONS, self.at[DECISIONS])
        return events, decisions

    def _read(self, stream: str, after: str) -> list[Entry]:
        """The next entries, about ``read_bytes`` if they are like earlier ones."""
        count = self._count[stream]
        entries = self._bus.follow(stream, after, count=count)
        self._note(stream, entries, count)
        return entries

    def _note(self, stream: str, entries: Sequence[Entry], count: int) -> None:
        """Whether there may be more than the ``count`` that were asked for, and how many fit next time."""
        self._full[stream] = len(entries) == count
        self._counted[stream].ended |= len(entries) < count
        if entries:
            fit = self._read_bytes * len(entries) // max(1, size(entries))
            self._count[stream] = max(1, min(self._entries, fit))


def size(entries: Sequence[Entry]) -> int:
    """Bytes of some entries."""
    return sum(len(value) for entry in entries for value in entry.fields.values())
