"""The streams of one fleet in a Redis or Valkey server."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from redis.exceptions import ResponseError

from actors.broker.bus import DEAD, DECISIONS, SHADOWS, START, Bounds, DeadLetter, Entry, Lag, id_order, stream_key
from actors.broker.redis_client import MAX_BLOCK_MS, RedisClient

log = logging.getLogger(__name__)

DEAD_LETTERS_KEPT = 10_000
#: A read that blocks for longer goes over the connections whose timeout outlasts the longest block. One that does not
#: shares those of other calls: where the broker's machine is gone without a word, it is missed as soon as by them.
SHORT_BLOCK_MS = 1_000


class RedisBus:
    """Implements `actors.broker.bus.Bus`.

    Calls that may be repeated are repeated while the broker is away, by the link's retry policy; `publish` only if the
    caller insists.

    Parameters
    ----------
    dead_letters
        How many of the newest dead letters are kept.
    unread_kept_s
        How long trimming waits for a group that does not acknowledge, in seconds of the broker's clock; None: without
        limit.
    """

    def __init__(
        self,
        link: RedisClient,
        fleet: str,
        *,
        dead_letters: int = DEAD_LETTERS_KEPT,
        unread_kept_s: float | None = None,
        shadow: bool = False,
    ) -> None:
        stream_key(fleet, DEAD)
        self._shadow = shadow
        self._link, self._fleet = link, fleet
        self._dead_letters, self._unread_kept_s = dead_letters, unread_kept_s

    def publish(self, stream: str, fields: Mapping[str, bytes], *, cap: int | None = None, insist: bool = False) -> str:
        """Append one entry; see the port."""
        # What a shadow's ingestor says to the fleet, that it wants a list, is true for a shadow too.
        key = stream_key(self._fleet, stream) if stream == DECISIONS else self._key(stream)
        pairs = dict(fields)

        def add(client: Any) -> str:
            entry: bytes = client.xadd(key, pairs, maxlen=cap, approximate=True)
            return entry.decode()

        return self._link.ask(add) if insist else self._link.once(add)

    def publish_all(self, stream: str, entries: Sequence[Mapping[str, bytes]], *, cap: int | None = None) -> list[str]:
        """Append entries; see the port. They go in one piece, so that the network and the disk are waited for once."""
        if not entries:
            return []
        key = self._key(stream)

        def add(client: Any) -> list[str]:
            with client.pipeline(transaction=False) as together:
                for fields in entries:
                    together.xadd(key, dict(fields), maxlen=cap, approximate=True)
                answers = together.execute(raise_on_error=False)  # it would put the command before the answer
            refusal = next((one for one in answers if isinstance(one, ResponseError)), None)
            if refusal is not None:
                raise refusal
            return [entry.decode() for entry in answers]

        return self._link.ask(add)

    def join(self, stream: str, group: str) -> None:
        """Create the group; see the port."""
        key = self._key(stream)
        self._link.ask(lambda client: _join(client, key, group))

    def read(
        self, stream: str, group: str, consumer: str, *, count: int = 100, block_ms: int = 0, pending: bool = False
    ) -> list[Entry]:
        """Hand this member entries; see the port."""
        _check_block(block_ms)
        key = self._key(stream)

        def take(client: Any) -> Any:
            arguments = {"streams": {key: START if pending else ">"}, "count": count}
            if block_ms and not pending:
                arguments["block"] = block_ms
            try:
                return client.xreadgroup(group, consumer, **arguments)
            except ResponseError as refusal:
                if "NOGROUP" not in str(refusal):
                    raise
                # The broker lost the stream. Reading it from the start is safe: folding knows what it has seen.
                log.warning("group %s of %s was gone and was made again from the start", group, key)
                _join(client, key, group)
                return client.xreadgroup(group, consumer, **arguments)

        rows = _rows(self._link.ask(take, blocking=block_ms > SHORT_BLOCK_MS))
        if not pending:
            return _entries(stream, rows)
        lost = [entry for entry, fields in rows if fields is None]
        if lost:
            log.warning("%d pending entries of %s are no longer in the stream", len(lost), key)
            self.acknowledge(stream, group, lost)
        return _entries(stream, rows)

    def acknowledge(self, stream: str, group: str, ids: Sequence[str]) -> int:
        """Mark entries as done; see the port."""
        if not ids:
            return 0
        key = self._key(stream)
        return int(self._link.ask(lambda client: client.xack(key, group, *ids)))

    def cover(self, stream: str, group: str, *, upto: str) -> None:
        """Settle everything up to an id; see the port."""
        id_order(upto)
        self._link.call("cover", [self._key(stream)], [group, upto])

    def recover(self, stream: str, group: str, consumer: str, *, idle_ms: int, count: int = 100) -> list[Entry]:
        """Take over pending entries of silent members; see the port."""
        key = self._key(stream)
        _, taken, *_ = self._link.ask(
            lambda client: client.xautoclaim(key, group, consumer, idle_ms, start_id=START, count=count)
        )
        return _entries(stream, [(entry.decode(), _decoded(fields)) for entry, fields in taken])

    def bury(self, letters: Sequence[DeadLetter]) -> int:
        """Write dead letters; see the port."""
        if not letters:
            return 0
        arguments: list[str | bytes | int] = [self._dead_letters]
        for letter in letters:
            fields = letter.fields()
            arguments += [f"{letter.stream}/{letter.entry}/{letter.index}", len(fields)]
            for name, value in fields.items():
                arguments += [name, value]
        dead = self._key(DEAD)
        return int(self._link.call("bury", [dead, f"{dead}:seen"], arguments))

    def follow(self, stream: str, after: str, *, count: int = 100, block_ms: int = 0) -> list[Entry]:
        """Read without a group; see the port."""
        return self.follow_any({stream: after}, count=count, block_ms=block_ms)[stream]

    def follow_any(self, after: Mapping[str, str], *, count: int = 100, block_ms: int = 0) -> Mapping[str, list[Entry]]:
        """Read several streams without a group; see the port. One command reads all of them."""
        _check_block(block_ms)
        streams = {self._key(stream): stream for stream in after}
        positions = {key: after[stream] for key, stream in streams.items()}

        def take(client: Any) -> Any:
            return client.xread(positions, count=count, block=block_ms or None)

        reply = self._link.ask(take, blocking=block_ms > SHORT_BLOCK_MS) or {}
        found: dict[str, list[Entry]] = {stream: [] for stream in after}
        for key, batches in reply.items():
            stream = streams[key.decode()]
            found[stream] = _entries(stream, _rows({key: batches}))
        return found

    def newest(self, stream: str, *, count: int = 1, before: str | None = None) -> list[Entry]:
        """Read from the end; see the port."""
        key = self._key(stream)
        high = "+" if before is None else f"({before}"
        rows = self._link.ask(lambda client: client.xrevrange(key, max=high, min="-", count=count))
        return [Entry(stream, entry.decode(), _decoded(fields) or {}) for entry, fields in rows]

    def trim(self, stream: str, *, covered: str) -> int:
        """Drop entries that no reader needs any more; see the port."""
        id_order(covered)
        kept_ms = "" if self._unread_kept_s is None else int(self._unread_kept_s * 1000)
        return int(self._link.call("trim", [self._key(stream)], [covered, kept_ms]))

    def bounds(self, stream: str) -> Bounds:
        """First and last id, and counts; see the port."""
        key = self._key(stream)
        info = self._link.ask(lambda client: _info(client.xinfo_stream, key))
        if info is None:
            return Bounds()
        first = info["first-entry"]
        return Bounds(
            first[0].decode() if first else START, info["last-generated-id"].decode(), info["length"],
            info["entries-added"],
        )  # fmt: skip

    def lags(self, stream: str) -> Mapping[str, Lag]:
        """How far behind each group is; see the port."""
        found = {}
        for name, undelivered, pending, waiting_ms, held_ms in self._link.call("lags", [self._key(stream)], []):
            found[name.decode()] = Lag(int(undelivered), int(pending), int(waiting_ms), int(max(waiting_ms, held_ms)))
        return found

    def reached(self, stream: str, group: str) -> str:
        """The last entry that a group was handed; see the port."""
        key = self._key(stream)
        rows = self._link.ask(lambda client: _info(client.xinfo_groups, key)) or ()
        return next((row["last-delivered-id"].decode() for row in rows if row["name"].decode() == group), START)

    def close(self) -> None:
        """Close the link."""
        self._link.close()

    def _key(self, stream: str) -> str:
        return stream_key(self._fleet, SHADOWS.get(stream, stream) if self._shadow else stream)


def _check_block(block_ms: int) -> None:
    if block_ms > MAX_BLOCK_MS:
        raise ValueError(f"block_ms must be at most {MAX_BLOCK_MS}, found {block_ms}")


def _entries(stream: str, rows: Sequence[tuple[str, dict[str, bytes] | None]]) -> list[Entry]:
    """Rows as entries, without those that were deleted."""
    return [Entry(stream, entry, fields) for entry, fields in rows if fields is not None]


def _join(client: Any, key: str, group: str) -> None:
    """Create the group unless it is there."""
    try:
        client.xgroup_create(key, group, id=START, mkstream=True)
    except ResponseError as refusal:
        if "BUSYGROUP" not in str(refusal):
            raise


def _info(ask: Any, key: str) -> Any:
    """The reply of an XINFO, None for a stream that is not there."""
    try:
        return ask(key)
    except ResponseError as refusal:
        if "no such key" not in str(refusal):
            raise
        return None


def _decoded(fields: dict[bytes, bytes] | None) -> dict[str, bytes] | None:
    """Field names as text; None where the entry was deleted, which shows as no fields at all."""
    return {name.decode("utf-8", "replace"): value for name, value in fields.items()} if fields else None


def _rows(reply: Any) -> list[tuple[str, dict[str, bytes] | None]]:
    """The entries of a one-stream XREAD or XREADGROUP reply: RESP3 gives ``{stream: [[entry, ...]]}`` or nothing."""
    rows = []
    for batches in (reply or {}).values():
        for batch in batches:
            rows += [(entry.decode(), _decoded(fields)) for entry, fields in batch]
    return rows
