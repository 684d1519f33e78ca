"""Checkpoints in the snapshots stream: a state cut into entries, closed by a manifest, whole or not there at all.

A large value in one piece stalls the broker for all clients (50 MB: half a second), so a checkpoint is compressed and
written in pieces. The manifest comes last; pieces without a manifest are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Annotated, Final, Literal

import msgpack
import zstandard
from pydantic import BaseModel, ConfigDict, Field

from actors.broker.bus import SNAPSHOTS, START, Bus, Entry, from_newest, id_order
from actors.documents.safe_msgpack import unpacked

log = logging.getLogger(__name__)

PIECE_BYTES = 512 * 1024
#: Pieces that are written with one call.
_TOGETHER: Final = 8
_FORMAT: Final = 1
# How many entries to look back for a complete checkpoint.
_LOOK_BACK = 4_096
_LARGEST_BYTES = 1 << 31

_Id = Annotated[str, Field(pattern=r"^[0-9]{1,18}-[0-9]{1,19}$")]


class _Said(BaseModel):
    """A manifest, as it is written."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    format: Literal[1]
    ids: Annotated[list[_Id], Field(min_length=1, max_length=2 * _LARGEST_BYTES // PIECE_BYTES)]
    size_bytes: Annotated[int, Field(ge=0, le=_LARGEST_BYTES)]
    digest: Annotated[bytes, Field(min_length=16, max_length=16)]
    schema_: Annotated[str, Field(alias="schema")]
    covers: dict[str, _Id]


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """The manifest of a checkpoint.

    Attributes
    ----------
    entry
        Id of the manifest, and ``first`` that of its first piece: earlier entries are no longer needed.
    pieces
        How many there are.
    covers
        By stream: the id up to which the state contains it; reading continues after it.
    """

    entry: str
    first: str
    pieces: int
    covers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PackedState:
    """A state as a checkpoint holds it: its pieces, compressed, and its size and digest before that."""

    pieces: Sequence[bytes]
    size_bytes: int
    digest: bytes


def packed(state: Sequence[bytes | memoryview]) -> PackedState:
    """Compress a state. The bytes of its buffers follow one another; they are never copied into one buffer.

    That takes half a second for a million tasks, nearly all of it without the GIL.
    """
    size, digest = sum(map(len, state)), blake2b(digest_size=16)
    compressor = zstandard.ZstdCompressor(level=1).compressobj(size=size)
    compressed = []
    for buffer in state:
        digest.update(buffer)
        compressed.append(compressor.compress(buffer))
    whole = b"".join([*compressed, compressor.flush()])
    pieces = [whole[at : at + PIECE_BYTES] for at in range(0, len(whole), PIECE_BYTES)]
    return PackedState(pieces, size, digest.digest())


def save(
    bus: Bus, state: PackedState, *, schema: str, covers: Mapping[str, str], before: CheckpointManifest | None = None
) -> CheckpointManifest:
    """Write a checkpoint, then drop those older than ``before``, which is kept in case this one is damaged."""
    pieces = state.pieces
    # Insisting may write a piece twice; a piece that no manifest names is ignored.
    ids = [
        entry
        for first in range(0, len(pieces), _TOGETHER)
        for entry in bus.publish_all(SNAPSHOTS, [{"piece": piece} for piece in pieces[first : first + _TOGETHER]])
    ]
    said = {
        "format": _FORMAT, "ids": ids, "size_bytes": state.size_bytes, "digest": state.digest, "schema": schema,
        "covers": dict(covers),
    }  # fmt: skip
    entry = bus.publish(SNAPSHOTS, {"manifest": msgpack.packb(said)}, insist=True)
    bus.trim(SNAPSHOTS, covered=ids[0] if before is None else before.first)
    return CheckpointManifest(entry, ids[0], len(ids), dict(covers))


def newest(bus: Bus, *, schema: str) -> tuple[CheckpointManifest, bytes] | None:
    """The newest checkpoint that is complete, of this schema and not damaged; None if there is none."""
    for entry in _manifests(bus):
        found = _whole(bus, entry, schema)
        if found is not None:
            return found
        log.warning("checkpoint %s is harmed or of another version; the one before it is tried", entry.id)
    return None


def _manifests(bus: Bus) -> Iterator[Entry]:
    """Entries that close a checkpoint, the newest first. Before one there may be pieces of a writer that died."""
    latest = islice(from_newest(bus, SNAPSHOTS, page=1), _LOOK_BACK)
    return (entry for entry in latest if "manifest" in entry.fields)


def _said(entry: Entry) -> _Said | None:
    """The content of a manifest; None if it is not one of ours."""
    try:
        return _Said.model_validate(unpacked(entry.fields["manifest"]))
    except ValueError:  # not msgpack, or not a manifest
        return None


def _whole(bus: Bus, entry: Entry, schema: str) -> tuple[CheckpointManifest, bytes] | None:
    said = _said(entry)
    if said is None or said.schema_ != schema:
        return None
    pieces = _pieces(bus, said)
    state = _state(pieces, said.size_bytes) if pieces is not None else None
    if state is None or blake2b(state, digest_size=16).digest() != said.digest:
        return None
    return CheckpointManifest(entry.id, said.ids[0], len(said.ids), said.covers), state


def _state(packed: bytes, size_bytes: int) -> bytes | None:
    """The unpacked pieces; None if they are not the stated number of bytes.

    Memory is allocated for the size in the frame, not in the manifest, so the two are compared before.
    """
    try:
        if zstandard.get_frame_parameters(packed).content_size != size_bytes:
            return None
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError:
        return None


def _pieces(bus: Bus, said: _Said) -> bytes | None:
    """The pieces in order, read eight at a time; None when one is missing. Other writers' lie between them."""
    held: dict[str, bytes] = {}
    wanted, size = set(said.ids), 0
    ms, sequence = id_order(said.ids[0])
    after = f"{ms}-{sequence - 1}" if sequence else f"{ms - 1}-{2**63}" if ms else START
    last = id_order(said.ids[-1])
    # Data that does not compress grows a little.
    while id_order(after) < last and size <= said.size_bytes + PIECE_BYTES:
        entries = bus.follow(SNAPSHOTS, after, count=8)
        if not entries:
            break
        read = {one.id: one.fields["piece"] for one in entries if one.id in wanted and "piece" in one.fields}
        held |= read
        size += sum(map(len, read.values()))
        after = entries[-1].id
    return b"".join(held[one] for one in said.ids) if wanted <= held.keys() else None
