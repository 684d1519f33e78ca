"""The streams of one fleet in this process's memory: for tests, seeded fault schedules and replays."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from actors.broker.bus import DEAD, START, Bounds, DeadLetter, Entry, Lag, id_order, stream_key


@dataclass(slots=True)
class _Pending:
    """An entry that was handed out: the member, and the time (ms)."""

    consumer: str
    since_ms: int


@dataclass(slots=True)
class _Group:
    """The last entry that one group was handed, and its unacknowledged entries."""

    delivered: tuple[int, int]
    pending: dict[tuple[int, int], _Pending] = field(default_factory=dict)


@dataclass(slots=True)
class _Log:
    """One stream: entries, and their ids in order."""

    ids: list[tuple[int, int]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    groups: dict[str, _Group] = field(default_factory=dict)
    last: tuple[int, int] = (0, 0)
    added: int = 0

    def after(self, position: tuple[int, int], count: int) -> list[Entry]:
        """Up to `count` entries behind an id."""
        at = bisect_right(self.ids, position)
        return self.entries[at : at + count]

    def oldest(self, held: _Group) -> tuple[int, int] | None:
        """The oldest entry that a group has not acknowledged, handed out or not."""
        unread = self.ids[bisect_right(self.ids, held.delivered) :][:1]
        return min([*held.pending, *unread], default=None)

    def drop(self, count: int) -> int:
        """Forget the oldest entries."""
        del self.ids[:count], self.entries[:count]
        return count


class MemoryBus:
    """Implements `actors.broker.bus.Bus`; several threads may use it.

    Parameters
    ----------
    clock_s
        The clock for new ids and idle members, in seconds.
    unread_kept_s
        How long trimming waits for a group that does not acknowledge, in seconds; None: without limit.
    """

    def __init__(
        self, fleet: str = "memory", clock_s: Callable[[], float] = time.time, *, unread_kept_s: float | None = None
    ) -> None:
        self._fleet, self._clock_s, self._unread_kept_s = fleet, clock_s, unread_kept_s
        self._logs: dict[str, _Log] = {}
        self._seen: set[tuple[str, str, int]] = set()
        self._changed = threading.Condition(threading.RLock())

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        """Append one entry; see the port."""
        if not fields:
            raise ValueError("an entry needs at least one field")
        del insist  # it always arrives
        with self._changed:
            log = self._log(stream)
            now = (int(self._clock_s() * 1000), 0)
            log.last = now if now > log.last else (log.last[0], log.last[1] + 1)
            log.ids.append(log.last)
            entry = Entry(stream, f"{log.last[0]}-{log.last[1]}", dict(fields))
            log.entries.append(entry)
            log.added += 1
            if cap is not None and len(log.ids) > cap:
                log.drop(len(log.ids) - cap)
            self._changed.notify_all()
            return entry.id

    def publish_all(self, stream: str, entries: Sequence[Mapping[str, bytes]], *, cap: int | None = None) -> list[str]:
        """Append entries; see the port."""
        return [self.publish(stream, fields, cap=cap, insist=True) for fields in entries]

    def join(self, stream: str, group: str) -> None:
        """Create the group; see the port."""
        with self._changed:
            self._log(stream).groups.setdefault(group, _Group(id_order(START)))

    def read(
        self, stream: str, group: str, consumer: str, *, count: int = 100, block_ms: int = 0, pending: bool = False
    ) -> list[Entry]:
        """Hand this member entries; see the port."""
        with self._changed:
            log = self._log(stream)
            held = log.groups.setdefault(group, _Group(id_order(START)))
            if pending:
                mine = sorted(at for at, one in held.pending.items() if one.consumer == consumer)[:count]
                return self._hand(log, held, consumer, mine)
            self._wait(lambda: bool(log.after(held.delivered, 1)), block_ms)
            found = log.after(held.delivered, count)
            if found:
                held.delivered = id_order(found[-1].id)
            return self._hand(log, held, consumer, [id_order(entry.id) for entry in found])

    def acknowledge(self, stream: str, group: str, ids: Sequence[str]) -> int:
        """Mark entries as done; see the port."""
        with self._changed:
            held = self._log(stream).groups.get(group)
            if held is None:
                return 0
            return sum(held.pending.pop(id_order(entry), None) is not None for entry in ids)

    def cover(self, stream: str, group: str, *, upto: str) -> None:
        """Settle everything up to an id; see the port."""
        with self._changed:
            held = self._log(stream).groups.get(group)
            if held is not None:
                cut = id_order(upto)
                held.pending = {at: one for at, one in held.pending.items() if at > cut}
                held.delivered = max(held.delivered, cut)

    def recover(self, stream: str, group: str, consumer: str, *, idle_ms: int, count: int = 100) -> list[Entry]:
        """Take over pending entries of silent members; see the port."""
        with self._changed:
            log = self._log(stream)
            held = log.groups[group]
            now_ms = int(self._clock_s() * 1000)
            stale = sorted(at for at, one in held.pending.items() if now_ms - one.since_ms >= idle_ms)[:count]
            return self._hand(log, held, consumer, stale)

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        """Write dead letters; see the port."""
        with self._changed:
            written = 0
            for letter in letters:
                identity = (letter.stream, letter.entry, letter.index)
                if identity not in self._seen:
                    self._seen.add(identity)
                    self.publish(DEAD, letter.fields())
                    written += 1
            return written

    def follow(self, stream: str, after: str, *, count: int = 100, block_ms: int = 0) -> list[Entry]:
        """Read without a group; see the port."""
        with self._changed:
            log = self._log(stream)
            position = id_order(after)
            self._wait(lambda: bool(log.after(position, 1)), block_ms)
            return log.after(position, count)

    def follow_any(self, after: Mapping[str, str], *, count: int = 100, block_ms: int = 0) -> Mapping[str, list[Entry]]:
        """Read several streams without a group; see the port."""
        with self._changed:
            read = [(stream, self._log(stream), id_order(position)) for stream, position in after.items()]
            self._wait(lambda: any(log.after(position, 1) for _, log, position in read), block_ms)
            return {stream: log.after(position, count) for stream, log, position in read}

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        """Read from the end; see the port."""
        with self._changed:
            log = self._log(stream)
            end = len(log.ids)
            if before is not None:
                high = id_order(before)
                end = bisect_right(log.ids, high) - (high in log.ids)
            return log.entries[max(0, end - count) : end][::-1]

    def trim(self, stream: str, *, covered: str) -> int:
        """Drop entries that no reader needs any more; see the port."""
        with self._changed:
            log, floor = self._log(stream), id_order(covered)
            for held in log.groups.values():
                oldest = log.oldest(held)
                if oldest is None or self._unread_kept_s is None or self._age_ms(oldest) <= self._unread_kept_s * 1000:
                    floor = min(floor, min(held.pending, default=held.delivered))
            return log.drop(sum(at < floor for at in log.ids))

    def bounds(self, stream: str) -> Bounds:
        """First and last id, and counts; see the port."""
        with self._changed:
            log = self._log(stream)
            first = log.entries[0].id if log.entries else START
            return Bounds(first, f"{log.last[0]}-{log.last[1]}", len(log.ids), log.added)

    def lags(self, stream: str) -> Mapping[str, Lag]:
        """How far behind each group is; see the port."""
        with self._changed:
            log = self._log(stream)
            found = {}
            for name, held in log.groups.items():
                unread, oldest = log.ids[bisect_right(log.ids, held.delivered) :], log.oldest(held)
                behind_ms = self._age_ms(unread[0]) if unread else 0
                held_ms = self._age_ms(oldest) if oldest is not None else 0
                found[name] = Lag(len(unread), len(held.pending), behind_ms, held_ms)
            return found

    def reached(self, stream: str, group: str) -> str:
        """The last entry that a group was handed; see the port."""
        with self._changed:
            held = self._log(stream).groups.get(group)
            return f"{held.delivered[0]}-{held.delivered[1]}" if held is not None else START

    def close(self) -> None:
        """Nothing to close."""

    def _age_ms(self, entry: tuple[int, int]) -> int:
        return max(0, int(self._clock_s() * 1000) - entry[0])

    def _log(self, stream: str) -> _Log:
        return self._logs.setdefault(stream_key(self._fleet, stream), _Log())

    def _wait(self, ready: Callable[[], bool], block_ms: int) -> None:
        if block_ms:
            self._changed.wait_for(ready, timeout=block_ms / 1000)

    def _hand(self, log: _Log, held: _Group, consumer: str, ids: Sequence[tuple[int, int]]) -> list[Entry]:
        """Note that these entries are handed to the member."""
        now_ms = int(self._clock_s() * 1000)
        entries = []
        for at in ids:
            index = bisect_right(log.ids, at) - 1
            if index < 0 or log.ids[index] != at:
                del held.pending[at]  # trimmed under the group, which `trim` never does
                continue
            held.pending[at] = _Pending(consumer, now_ms)
            entries.append(log.entries[index])
        return entries
