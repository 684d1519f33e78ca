"""What grows is found, and what only varies is not."""

from __future__ import annotations

from dataclasses import replace

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


def test_a_role_that_was_started_anew_is_named() -> None:
    made = samples()
    roles = [replace(one, roles=frozenset({("ray::CommitterActor", 7 + at // 15)})) for at, one in enumerate(made)]
    assert drifts(roles) == ["ray::CommitterActor ended and was started anew"]


def test_a_service_that_decides_nothing_any_more_is_noticed() -> None:
    made = samples()
    silent = [replace(one, durations={}) for one in made]
    assert drifts([*made[:15], *silent[15:]]) == ["clearway_cycle_duration has nothing to measure any more"]
    assert drifts(silent) == ["nothing was decided"]


@pytest.mark.parametrize(("stream", "drift"), [("starving", False), ("events", True)])
def test_a_stream_that_keeps_its_newest_entries_may_fill(stream: str, drift: bool) -> None:
    made = [replace(one, streams={stream: 2_000 + 200 * at}) for at, one in enumerate(samples())]
    assert bool(drifts(made)) == drift
