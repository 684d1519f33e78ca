"""A figure that stands until it is set anew, or until what it says something of is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from opentelemetry.metrics import CallbackOptions, Meter, Observation

#: What a figure is split by, such as the queue's name.
Split = Mapping[str, str]


class Gauge:
    """One value for each split. The library's own gauge reports a value that was set once to the end of the process."""

    def __init__(self, meter: Meter, name: str, unit: str, what: str) -> None:
        self.name, self._lock = name, threading.Lock()
        self._standing: dict[tuple[tuple[str, str], ...], Observation] = {}
        meter.create_observable_gauge(name, [self._observed], unit, what)

    def set(self, value: float, split: Split | None = None) -> None:
        """Set one value; the others stay."""
        with self._lock:
            self._standing[_key(split)] = Observation(value, split)

    def only(self, values: Iterable[tuple[float, Split]]) -> None:
        """Set these values; no others are reported any more."""
        standing = {_key(split): Observation(value, split) for value, split in values}
        with self._lock:
            self._standing = standing

    def drop(self) -> None:
        """Report nothing until a value is set."""
        self.only(())

    def _observed(self, options: CallbackOptions) -> list[Observation]:
        del options
        with self._lock:
            return list(self._standing.values())


def _key(split: Split | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((split or {}).items()))
