"""What is sampled of a running service, and what of it may not drift."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from actors.broker.bus import FULFILLED, SERVICES, SPANS, STARVING, STREAMS, Bus
from actors.configuration.settings import TelemetrySettings
from actors.observability.span_store import entries_kept
from actors.processes.tree import descendants
from actors.protocol import outcomes, presence
from actors.search import reasons_writer

#: A resident set may grow by this part and this many bytes from the first third to the last, a stream by this factor
#: and this many entries, a duration by this factor and this many seconds.
MEMORY_PART, MEMORY_BYTES = 0.10, 32 << 20
STREAM_FACTOR, STREAM_ENTRIES = 1.5, 500
#: Streams that keep their newest entries may fill up to so many; to trim them takes whole blocks of entries.
KEPT: Mapping[str, int] = {
    STARVING: reasons_writer.KEPT, FULFILLED: outcomes.KEPT, SERVICES: presence.KEPT,
    SPANS: entries_kept(TelemetrySettings().spans_kept),
}  # fmt: skip
DURATION_FACTOR, DURATION_S = 1.5, 0.050
_SUM_OR_COUNT = re.compile(r"^(clearway_(?:decision|cycle)_duration\w*)_(sum|count)(?:\{[^}]*\})? (\S+)", re.MULTILINE)

_ROLE = re.compile(r"ray::\w+Actor")


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment: resident bytes by process, entries by stream, mean durations since the last sample (seconds).

    ``roles`` has the process ids of the service's roles.
    """

    memory: Mapping[str, int]
    streams: Mapping[str, int]
    durations: Mapping[str, float]
    roles: frozenset[tuple[str, int]] = frozenset()


class Sampler:
    """Samples one service and its broker.

    Parameters
    ----------
    root
        Process of the service; its descendants are sampled.
    metrics
        URL of its figures.
    """

    def __init__(self, root: int, broker: int, bus: Bus, metrics: str) -> None:
        self._root, self._broker, self._bus, self._metrics = root, broker, bus, metrics
        self._before: dict[str, tuple[float, float]] = {}

    def take(self) -> Sample:
        """The next sample."""
        memory: dict[str, int] = {}
        roles: set[tuple[str, int]] = set()
        for pid in (self._root, *descendants(self._root), self._broker):
            name, size = _resident(pid)
            if size:
                memory[name] = memory.get(name, 0) + size
                roles |= {(name, pid)} if _ROLE.fullmatch(name) else set()
        streams = {stream: self._bus.bounds(stream).length for stream in STREAMS}
        return Sample(memory, streams, self._durations(), frozenset(roles))

    def _durations(self) -> dict[str, float]:
        with urllib.request.urlopen(self._metrics, timeout=10) as answer:
            text = answer.read().decode()
        now: dict[str, dict[str, float]] = {}
        for name, part, value in _SUM_OR_COUNT.findall(text):
            found = now.setdefault(name, {"sum": 0.0, "count": 0.0})
            found[part] += float(value)
        means = {}
        for name, one in now.items():
            total, count = self._before.get(name, (0.0, 0.0))
            if one["count"] > count:
                means[name] = (one["sum"] - total) / (one["count"] - count)
            self._before[name] = one["sum"], one["count"]
        return means


def drifts(samples: Sequence[Sample]) -> list[str]:
    """A sentence for each thing that grew from the first third of the samples to the last, ended or fell silent."""
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    found = [f"{name} ended and was started anew" for name, _ in sorted(samples[0].roles - samples[-1].roles)]
    silent = {name for one in first for name in one.durations} - {name for one in last for name in one.durations}
    found += [f"{name} has nothing to measure any more" for name in sorted(silent)]
    if not any(one.durations for one in samples):
        found.append("nothing was decided")
    for name in sorted({name for one in last for name in one.memory}):
        before, after = _middle(first, "memory", name), _middle(last, "memory", name)
        if before and after > before * (1 + MEMORY_PART) + MEMORY_BYTES:
            found.append(f"{name} grew from {before / 1e6:.0f} to {after / 1e6:.0f} MB")
    for name in sorted({name for one in last for name in one.streams}):
        before, after = _middle(first, "streams", name), _middle(last, "streams", name)
        if after > max(before * STREAM_FACTOR, KEPT.get(name, 0)) + STREAM_ENTRIES:
            found.append(f"stream {name} grew from {before:.0f} to {after:.0f} entries")
    for name in sorted({name for one in last for name in one.durations}):
        before, after = _middle(first, "durations", name), _middle(last, "durations", name)
        if before and after > before * DURATION_FACTOR + DURATION_S:
            found.append(f"{name} grew from {before * 1e3:.0f} to {after * 1e3:.0f} ms")
    return found


def table(samples: Sequence[Sample]) -> str:
    """The first third and the last as lines of a page."""
    third = max(1, len(samples) // 3)
    lines = ["| what | first third | last third |", "|---|---|---|"]
    for kind, unit, scale in (("memory", "MB resident", 1e-6), ("streams", "entries", 1.0), ("durations", "ms", 1e3)):
        for name in sorted({name for one in samples for name in getattr(one, kind)}):
            before, after = _middle(samples[:third], kind, name), _middle(samples[-third:], kind, name)
            lines.append(f"| {name}, {unit} | {before * scale:.0f} | {after * scale:.0f} |")
    return "\n".join(lines)


def _middle(samples: Sequence[Sample], kind: str, name: str) -> float:
    found = [getattr(one, kind)[name] for one in samples if name in getattr(one, kind)]
    return float(median(found)) if found else 0.0


def _resident(pid: int) -> tuple[str, int]:
    """What a process is called, and its resident bytes without shared memory; 0 once it has ended."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "", 0
    held = re.search(r"RssAnon:\s+(\d+) kB", status)
    name = (
        command.split(" ")[0].partition(".")[0]
        if command.startswith("ray::")
        else Path(command.split(" ")[0] or "?").name
    )
    return name, int(held[1]) * 1024 if held else 0
