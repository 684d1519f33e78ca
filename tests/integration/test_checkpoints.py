"""A checkpoint is whole or not there, in memory and in a real broker."""

from __future__ import annotations

import random

import msgpack
import pytest
import zstandard

from actors.broker.bus import SNAPSHOTS, START, Bus
from actors.broker.checkpoints import PIECE_BYTES, newest, packed, save

COVERS = {"events": "5-0", "decisions": "7-1"}


@pytest.mark.parametrize("size", [0, 1, 3 * PIECE_BYTES + 17])
def test_a_state_comes_back_as_it_was(bus: Bus, size: int) -> None:
    state = random.Random(size).randbytes(size)  # incompressible, so that it takes several pieces
    saved = save(bus, packed([state]), schema="1", covers=COVERS)
    assert newest(bus, schema="1") == (saved, state)
    assert saved.covers == COVERS
    assert saved.pieces == size // PIECE_BYTES + 1


def test_the_newest_wins_and_all_but_it_and_the_one_before_are_dropped(bus: Bus) -> None:
    saved = []
    for state in (b"one", b"two", b"three"):
        saved.append(save(bus, packed([state]), schema="1", covers=COVERS, before=saved[-1] if saved else None))
    assert newest(bus, schema="1") == (saved[-1], b"three")
    assert bus.bounds(SNAPSHOTS).first == saved[1].first


def test_there_is_none_at_first(bus: Bus) -> None:
    assert newest(bus, schema="1") is None


def test_another_schema_is_not_read(bus: Bus) -> None:
    save(bus, packed([b"state"]), schema="1", covers=COVERS)
    assert newest(bus, schema="2") is None


def test_pieces_without_a_manifest_mean_nothing(bus: Bus) -> None:
    saved = save(bus, packed([b"state"]), schema="1", covers=COVERS)
    bus.publish(SNAPSHOTS, {"piece": b"of a writer that died"})
    assert newest(bus, schema="1") == (saved, b"state")


def test_a_checkpoint_that_lacks_a_piece_or_is_harmed_is_passed_over(bus: Bus) -> None:
    saved = save(bus, packed([b"state"]), schema="1", covers=COVERS)
    whole = msgpack.unpackb(bus.follow(SNAPSHOTS, START)[-1].fields["manifest"])
    rotten = bus.publish(SNAPSHOTS, {"piece": b"no zstd frame"})
    for changed in ({"ids": ["1-0", *whole["ids"]]}, {"digest": b"\x00" * 16}, {"format": 2}, {"ids": [rotten]}):
        bus.publish(SNAPSHOTS, {"manifest": msgpack.packb({**whole, **changed})})
    for nonsense in (b"\xc1", b"", msgpack.packb([1])):
        bus.publish(SNAPSHOTS, {"manifest": nonsense})
    assert newest(bus, schema="1") == (saved, b"state")


def test_two_writers_do_not_mix_their_pieces(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = type(bus).publish

    def beside(self: Bus, stream: str, fields: dict[str, bytes], **options: object) -> str:
        publish(self, stream, {"piece": b"of another writer"})
        return publish(self, stream, fields, **options)

    monkeypatch.setattr(type(bus), "publish", beside)
    state = random.Random(1).randbytes(2 * PIECE_BYTES)
    saved = save(bus, packed([state]), schema="1", covers=COVERS)
    assert newest(bus, schema="1") == (saved, state)


def test_a_checkpoint_that_swells_is_never_unpacked(bus: Bus) -> None:
    saved = save(bus, packed([b"state"]), schema="1", covers=COVERS)
    whole = msgpack.unpackb(bus.follow(SNAPSHOTS, START)[-1].fields["manifest"])
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 28))
    # The frame's own head says how much room is made for it: here 2^62 bytes.
    claims = bomb[:5] + (1 << 62).to_bytes(8, "little") + b"\x01\x00\x00"
    claims = b"\x28\xb5\x2f\xfd\xe0" + claims[5:]
    assert len(bomb) < 100_000
    for frame, size in ((bomb, 5), (bomb, (1 << 28) - 1), (claims, 5), (claims, 1 << 31)):
        piece = bus.publish(SNAPSHOTS, {"piece": frame})
        said = {**whole, "ids": [piece], "size_bytes": size}
        bus.publish(SNAPSHOTS, {"manifest": msgpack.packb(said)})
    assert newest(bus, schema="1") == (saved, b"state")


@pytest.mark.parametrize(
    "changed",
    [
        {"ids": []}, {"ids": ["1-0"] * 10_000}, {"ids": "1-0"}, {"ids": [1]}, {"ids": ["nonsense"]}, {"ids": [b"1-0"]},
        {"size_bytes": -1}, {"size_bytes": 1 << 40}, {"size_bytes": 5.0}, {"size_bytes": None}, {"digest": "x" * 16},
        {"schema": 1}, {"covers": []}, {"covers": {"events": 1}}, {"covers": {"events": "x"}}, {"format": "1"},
    ],
    ids=str,
)  # fmt: skip
def test_a_manifest_that_says_what_cannot_be_is_passed_over(bus: Bus, changed: dict[str, object]) -> None:
    saved = save(bus, packed([b"state"]), schema="1", covers=COVERS)
    whole = msgpack.unpackb(bus.follow(SNAPSHOTS, START)[-1].fields["manifest"])
    bus.publish(SNAPSHOTS, {"manifest": msgpack.packb({**whole, **changed})})
    for left_out in whole:
        bus.publish(SNAPSHOTS, {"manifest": msgpack.packb({key: whole[key] for key in whole if key != left_out})})
    assert newest(bus, schema="1") == (saved, b"state")
