"""How much a fleet may hold in all: an operator's setting, the same for what is told and for cluster files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StateLimits:
    """The most that a state may hold.

    Attributes
    ----------
    tasks, queues, domains
        How many there may be.
    resources
        How many names of resources: each is a column of every node, shape, podgroup and queue.
    state_bytes
        Bytes in all, as `actors.cluster_file.bounds.Size` estimates them.
    """

    tasks: int = 5_000_000
    resources: int = 128
    queues: int = 100_000
    domains: int = 1_000_000
    state_bytes: int = 4 << 30


STATE_LIMITS = StateLimits()
