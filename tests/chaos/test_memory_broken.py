"""The schedules notice what is broken: each part here would let one of the invariants go."""

from __future__ import annotations

import pytest

from tests.chaos import memory_broken as broken
from tests.chaos.memory_checks import run
from tests.chaos.memory_world import Parts

SEEDS = range(1, 61)


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (Parts(ledger=broken.UnfencedLedger), "under lease"),
        (Parts(ledger=broken.ForgetfulLedger), "was answered"),
        (Parts(ledger=broken.HastyLedger), "recorded 0 times"),
        (Parts(bus=broken.LeakyBus), "the fleet has it"),
        (Parts(bus=broken.SilentBus), "among the dead letters"),
        (Parts(bus=broken.EchoingBus), "recorded 2 times"),
    ],
    ids=[
        "a ledger without fencing", "a ledger that forgets", "a ledger that loses", "a bus that loses",
        "a bus that buries nothing", "a bus that repeats",
    ],
)  # fmt: skip
def test_a_broken_part_is_caught(parts: Parts, complaint: str) -> None:
    for seed in SEEDS:
        outcome = run(seed, parts)
        if any(complaint in sentence for sentence in outcome.broken):
            return
    pytest.fail(f"no schedule noticed: {complaint}")
