"""What grows is found, and what only varies is not."""

from __future__ import annotations

import pytest

from tests.soak.samples import Sample, drifts, table

_MB = 1 << 20


def samples(growing: str = "") -> list[Sample]:
    """Thirty samples that vary, and one thing that grows."""
    made = []
    for at in range(30):
        grown = 1.0 + at / 15 if growing else 1.0
        memory = int(400 * _MB * (grown if growing == "memory" else 1.0)) + at % 3 * _MB
        stream = int(2_000 * (grown if growing == "streams" else 1.0)) + at % 7 * 20
        duration = 0.2 * (grown if growing == "durations" else 1.0) + at % 2 * 0.01
        made.append(Sample({"ray::IngestorActor": memory}, {"events": stream}, {"clearway_cycle_duration": duration}))
    return made


def test_what_varies_does_not_drift() -> None:
    assert drifts(samples()) == []
    assert "| events, entries | 20" in table(samples())


@pytest.mark.parametrize(
    ("growing", "said"),
    [
        ("memory", "ray::IngestorActor grew from"),
        ("streams", "stream events grew from"),
        ("durations", "clearway_cycle_duration grew from"),
    ],
)
def test_what_grows_is_named(growing: str, said: str) -> None:
    (found,) = drifts(samples(growing))
    assert found.startswith(said)
