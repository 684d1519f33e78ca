"""The page of a run of the benchmarks: a table of all figures, with the machine and the day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Between these the page is written anew.
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
#: What has a column of its own, or is told once for the page.
_APART = ("name", "p50_ms", "p99_ms", "runs", "load_1m", "not_available")


def with_figures(
    page: str, results: Sequence[Mapping[str, Any]], about: Mapping[str, Any], day: str, plots: Sequence[str]
) -> str:
    """The page with the figures of a run in place of those before.

    Parameters
    ----------
    results, about
        As ``clearway bench --json`` prints them: figures by name for each benchmark, and the machine.
    day
        When they were measured.
    plots
        File names of plots beside the page.

    Raises
    ------
    ValueError
        If the page does not say where the figures go.
    """
    if BEGIN not in page or END not in page:
        raise ValueError(f"expected {BEGIN} and {END}, found a page without them")
    loads = [result["load_1m"] for result in results if "load_1m" in result]
    machine = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())
    lines = [
        f"{day}: {machine}; load {min(loads, default=0.0)} to {max(loads, default=0.0)}.",
        "",
        *(f"![{name.removesuffix('.svg')}]({name})" for name in plots),
        "",
        "| benchmark | p50, ms | p99, ms | runs | other figures |",
        "| --- | --- | --- | --- | --- |",
        *map(_row, results),
    ]
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    return before + "\n".join([BEGIN, *lines, END]) + after


def _row(result: Mapping[str, Any]) -> str:
    others = ", ".join(f"{key} {value}" for key, value in result.items() if key not in _APART)
    cells = (f"`{result['name']}`", *(result.get(key, "") for key in ("p50_ms", "p99_ms", "runs")))
    return "| " + " | ".join(map(str, (*cells, result.get("not_available", others)))) + " |"
