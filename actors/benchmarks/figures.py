"""Figures of `clearway bench`: how they are timed, and the generated fleets that they are measured on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from actors.configuration.profiles import load_profile
from actors.fleets.generated import NOW, GangSpec, GeneratedFleet, generate
from pipeline.decision.attempt import Attempt
from pipeline.policy import Purpose

#: Number of runs of a figure that takes milliseconds, and of one that takes much longer.
RUNS, FEW = 50, 10
WARM_UP = 3
#: Seconds after which a figure with at least FEW runs gets no further run.
_LIMIT_MS = 20_000.0
#: Seconds between two looks at what is waited for.
_POLL_S = 0.1


class NotAvailable(Exception):
    """The figure cannot be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement.

    Attributes
    ----------
    p50_ms, p99_ms
        Milliseconds; None if the figure is not a time.
    runs
        The number of runs.
    also
        Further figures, by name.
    """

    p50_ms: float | None
    p99_ms: float | None
    runs: int
    also: Mapping[str, float | int | str] = field(default_factory=dict)


def timed(work: Callable[[], object], runs: int = RUNS, **also: float | str) -> Figure:
    """Median and 99th percentile of ``runs`` runs after some warm-up; of at least ``FEW`` runs if they are slow."""
    for _ in range(WARM_UP):
        work()
    spent: list[float] = []
    while len(spent) < FEW or (len(spent) < runs and sum(spent) < _LIMIT_MS):
        begin = time.perf_counter()
        work()
        spent.append((time.perf_counter() - begin) * 1e3)
    return Figure(digits(np.median(spent)), digits(np.percentile(spent, 99)), len(spent), also)


def until(holds: Callable[[], bool], what: str, limit_s: float) -> None:
    """Wait until something holds.

    Raises
    ------
    NotAvailable
        When it does not within ``limit_s`` seconds.
    """
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            raise NotAvailable(f"{what}: not within {limit_s:.0f} s")
        time.sleep(_POLL_S)


def digits(value: float | np.floating[Any]) -> float:
    """The value with four significant digits."""
    return float(f"{value:.4g}")


@lru_cache(maxsize=4)
def generated_fleet(nodes: int, gang: GangSpec, purpose: Purpose = Purpose.PREEMPT) -> GeneratedFleet:
    """A fleet with one queue for preempt, with many for reclaim."""
    return generate(nodes, gang, queues=0) if purpose is Purpose.PREEMPT else generate(nodes, gang)


def attempt_on(fleet: GeneratedFleet, purpose: Purpose = Purpose.PREEMPT) -> Attempt:
    """The attempt of the fleet's gang under the default profile, in any domain."""
    return Attempt(
        snapshot=fleet.snapshot,
        policy=load_profile("default"),
        purpose=purpose,
        podgroups=(fleet.gang,),
        domains=None,
        now=NOW,
        action=purpose.value,
    )
