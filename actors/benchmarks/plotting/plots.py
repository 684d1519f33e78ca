"""Plots of a run of the benchmarks: how the time of a decision grows, and each figure beside its budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actors.benchmarks.plotting.budgets import BUDGETS

_INK, _MET, _MISSED = "#1f6f8b", "#1f6f8b", "#c0504d"


def draw(results: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw what was measured, as ``growth.svg`` and ``budgets.svg``; the files.

    Parameters
    ----------
    results
        Figures by name, one mapping for each benchmark, as ``clearway bench --json`` prints them.
    """
    import matplotlib as mpl  # a development dependency, which is asked about before anything is measured
    from matplotlib import pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "clearway", "font.size": 9, "svg.fonttype": "none"})
    figures = {result["name"]: result for result in results}
    drawn = []
    for name, plot in (("growth.svg", _growth), ("budgets.svg", _budgets)):
        figure = plot(plt, figures)
        if figure is not None:
            figure.tight_layout()
            figure.savefig(folder / name, metadata={"Date": None})
            plt.close(figure)
            drawn.append(folder / name)
    return drawn


def _growth(plt: Any, figures: Mapping[str, Mapping[str, Any]]) -> Any:
    """Time over tasks, on logarithmic axes, with the fitted line; None if it was not measured."""
    measured = figures.get("growth", {})
    tasks = np.array([value for key, value in measured.items() if key.startswith("tasks_")], np.float64)
    spent = np.array([value for key, value in measured.items() if key.startswith("p50_ms_")], np.float64)
    if len(tasks) == 0:
        return None
    figure, axes = plt.subplots(figsize=(5, 3.4))
    fitted = np.exp(np.log(spent).mean() + measured["exponent"] * (np.log(tasks) - np.log(tasks).mean()))
    axes.loglog(tasks, fitted, color=_INK, label=f"grows with the power {measured['exponent']:.2f} of tasks")
    axes.loglog(tasks, spent, "o", color=_INK)
    for at, value in zip(tasks, spent, strict=True):
        axes.annotate(f"{value:.3g} ms", (at, value), textcoords="offset points", xytext=(6, -10))
    axes.set(xlabel="tasks", ylabel="ms", title="a gang of 512 tasks, in any domain")
    axes.margins(0.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _budgets(plt: Any, figures: Mapping[str, Mapping[str, Any]]) -> Any:
    """Each figure that has a budget as a part of it; None if none was measured."""
    found = [(one, figures[one.benchmark].get(one.figure)) for one in BUDGETS if one.benchmark in figures]
    some = [(one, float(value)) for one, value in found if value is not None]
    if not some:
        return None
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.19 * len(some)))
    parts = [value / one.most for one, value in some]
    bars = axes.barh(range(len(some)), parts, color=[_MET if part <= 1 else _MISSED for part in parts])
    axes.bar_label(bars, [f"{value:.3g} of {one.most:.3g}" for one, value in some], padding=3, fontsize=7)
    axes.set_yticks(range(len(some)), [f"{one.benchmark}, {one.figure}" for one, _ in some], fontsize=7)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set(xscale="log", title="figures over their budgets")
    axes.margins(x=0.2)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    return figure
