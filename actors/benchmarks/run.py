"""``clearway bench``: the budgets of the design, measured on this machine, with runs and load of each figure."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numba
import numpy as np

from actors.benchmarks.decision_measurements import DECISION_MEASUREMENTS
from actors.benchmarks.figures import Figure, NotAvailable
from actors.benchmarks.file_measurements import FILE_MEASUREMENTS
from actors.benchmarks.live import LIVE_MEASUREMENTS
from actors.benchmarks.mixed_measurements import MIXED_MEASUREMENTS
from actors.benchmarks.peers import peer_measurements
from actors.benchmarks.plotting.page import BEGIN, END, with_figures
from actors.benchmarks.plotting.plots import draw
from actors.benchmarks.process_measurements import PROCESS_MEASUREMENTS
from actors.benchmarks.state_measurements import STATE_MEASUREMENTS
from actors.benchmarks.stream_measurements import STREAM_MEASUREMENTS
from actors.benchmarks.takeover import takeover
from actors.configuration.settings import SettingsRefused
from actors.documents.results import say

BENCHMARKS = {
    **DECISION_MEASUREMENTS,
    **MIXED_MEASUREMENTS,
    **STATE_MEASUREMENTS,
    **STREAM_MEASUREMENTS,
    **PROCESS_MEASUREMENTS,
    **FILE_MEASUREMENTS,
    "takeover": takeover,
    **LIVE_MEASUREMENTS,
}


def run(only: tuple[str, ...], *, as_json: bool, peers: Path | None = None, page: Path | None = None) -> int:
    """Measure the benchmarks in ``only``, or all, and print the figures; the exit code.

    ``only`` may name the beginning of several. ``peers`` is the folder with the fleets of other schedulers. The figures
    take the place of those on ``page``, with plots beside it.

    Raises
    ------
    SettingsRefused
        For a name that is not a benchmark, a folder without fleets, and a page that cannot be written or drawn for.
    """
    if page is not None:
        _refuse_page(page)
    if peers is not None and not all((peers / file).is_file() for file in ("fleets.py", "judge.py")):
        raise SettingsRefused(f"--peers: expected a folder with fleets.py and judge.py, found {peers}")
    every = BENCHMARKS | peer_measurements(peers)
    unknown = [name for name in only if not _named(every, name)]
    if unknown:
        raise SettingsRefused(f"--only: expected one of {', '.join(every)}; found {unknown[0]!r}")
    about = machine()
    if not as_json:
        say("".join(f"{key}: {value}\n" for key, value in about.items()))
    results: list[dict[str, Any]] = []
    for name in [one for said in only for one in _named(every, said)] or every:
        results.append({"name": name, **measured(every[name])})
        if not as_json:
            say(f"{_line(results[-1])}\n")
    if as_json:
        report = {"machine": about, "benchmarks": results}
        say(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    if page is not None:
        plots = [file.name for file in draw(results, page.parent)]
        day = datetime.now(UTC).date().isoformat()
        page.write_text(with_figures(page.read_text(encoding="utf-8"), results, about, day, plots), encoding="utf-8")
    return 0


def _refuse_page(page: Path) -> None:
    if not page.is_file() or not {BEGIN, END} <= set(page.read_text(encoding="utf-8").splitlines()):
        raise SettingsRefused(f"--page: expected a file with the lines {BEGIN} and {END}, found {page}")
    if find_spec("matplotlib") is None:
        raise SettingsRefused("--page: expected Matplotlib, a development dependency, which is not installed")


def _named(every: Mapping[str, Callable[[], Figure]], said: str) -> list[str]:
    """The benchmark of a name, or those of the peer fleets whose names begin with it."""
    return [said] if said in every else [name for name in every if name.startswith(f"{said} ")]


def measured(benchmark: Callable[[], Figure]) -> dict[str, Any]:
    """One figure as plain data; ``not_available`` says why it could not be measured."""
    try:
        figure = benchmark()
    except NotAvailable as why:
        return {"not_available": f"not available yet: {why}"}
    plain = {key: value for key, value in asdict(figure).items() if value is not None and key != "also"}
    return {**plain, **figure.also, "load_1m": round(os.getloadavg()[0], 2)}


def machine() -> dict[str, str | int | float]:
    """The machine that the figures are measured on."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _line(result: dict[str, Any]) -> str:
    shown = ", ".join(f"{key} {value}" for key, value in result.items() if key != "name")
    return f"{result['name']:<22} {shown}"
