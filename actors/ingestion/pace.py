"""How much is read at once, and how often a checkpoint is made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """How much at once, and how often a checkpoint.

    Attributes
    ----------
    entries
        Read at once from a stream, at most.
    read_bytes
        About this many bytes at once, estimated by the sizes of earlier entries; a single entry may be larger.
    checkpoint_every_s
        Seconds between checkpoints while messages come.
    checkpoint_every_entries
        Or this many entries, whichever is first: it bounds what a recovery has to read.
    checkpoint_every_bytes
        Or this many bytes of them: it bounds what the broker has to hold.
    """

    entries: int = 500
    read_bytes: int = 8 << 20
    checkpoint_every_s: float = 30.0
    checkpoint_every_entries: int = 20_000
    checkpoint_every_bytes: int = 256 << 20
