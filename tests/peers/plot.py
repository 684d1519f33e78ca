"""Draw some rows of docs/peers.md for the README: ``make peers`` does so after it has written the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib import pyplot as plt

from actors.benchmarks.peers import figures
from tests.support.results import results_of

#: The rows that are shown, as the page names them, and what they are called in the plot.
SHOWN: Mapping[str, str] = {
    "topology 1000 preempt A64": "1,000 nodes, preempt, 64 tasks (Volcano)",
    "topology 5000 preempt A64": "5,000 nodes, preempt, 64 tasks (Volcano)",
    "topology 10000 preempt A64": "10,000 nodes, preempt, 64 tasks (Volcano)",
    "topology 10000 reclaim A64": "10,000 nodes, reclaim, 64 tasks (Volcano)",
    "topology 10000 preempt A512": "10,000 nodes, preempt, 512 tasks (Volcano)",
    "jobs 5000 preempt --gang 64": "5,000 nodes, preempt, 64 tasks (KAI Scheduler)",
    "jobs 1000 preempt --gang 512": "1,000 nodes, preempt, 512 tasks (KAI Scheduler)",
}
_PROFILE = "default"
_OURS, _THEIRS = "#1f6f8b", "#c9c9c9"


class Point(NamedTuple):
    """One row: seconds and lost GPU-hours of the peer and of Clearway; None where the peer's were not recorded."""

    label: str
    theirs_s: float
    ours_s: float
    theirs_lost: float | None
    ours_lost: float


def points(page: str) -> list[Point]:
    """The rows of the page that are shown, in order.

    Raises
    ------
    ValueError
        If the page lacks one of them.
    """
    table = results_of(page).splitlines()
    heads, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table if not line.startswith("| -")
    ]
    found = {row[0]: dict(zip(heads[2:], row[2:], strict=True)) for row in rows if row[1] == _PROFILE}
    if missing := sorted(SHOWN.keys() - found.keys()):
        raise ValueError(f"docs/peers.md: expected a row of profile {_PROFILE} for each of {', '.join(missing)}")
    return [_point(label, found[fleet]) for fleet, label in SHOWN.items()]


def _point(label: str, row: Mapping[str, str]) -> Point:
    lost = figures(row["lost GPU-h, peer"])
    return Point(
        label, sum(figures(row["ms, peer"])) / 1e3, float(row["ms"]) / 1e3, min(lost, default=None),
        float(row["lost GPU-h"]),
    )  # fmt: skip


def draw(shown: Sequence[Point], file: Path) -> None:
    """Two panels with a pair of bars for each row, on logarithmic axes; no bar where nothing was recorded."""
    mpl.rcParams.update({"svg.hashsalt": "clearway", "font.size": 9, "svg.fonttype": "none"})
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    sides = (
        ("seconds until the decision", [(one.theirs_s, one.ours_s) for one in shown], "{:.3g} s"),
        ("GPU-hours of work lost", [(one.theirs_lost, one.ours_lost) for one in shown], "{:,.0f}"),
    )
    for panel, (title, pairs, told) in zip(panels, sides, strict=True):
        for shift, colour, name, values in (
            (-0.2, _THEIRS, "the peer", [theirs or 0.0 for theirs, _ in pairs]),
            (0.2, _OURS, "Clearway", [ours for _, ours in pairs]),
        ):
            bars = panel.barh([at + shift for at in range(len(pairs))], values, 0.38, color=colour, label=name)
            panel.bar_label(bars, [told.format(value) if value else "" for value in values], padding=3)
        panel.set_xscale("log")
        panel.set_title(title)
        panel.margins(x=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(shown)), [one.label for one in shown])
    panels[0].invert_yaxis()
    panels[1].legend(loc="lower right", frameon=False)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def main() -> int:
    """Draw what the page says."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers.plot", description=__doc__)
    parser.add_argument("--page", type=Path, required=True, help="the page with the table")
    parser.add_argument("--output", type=Path, required=True, help="an SVG file")
    chosen = parser.parse_args()
    draw(points(chosen.page.read_text(encoding="utf-8")), chosen.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
