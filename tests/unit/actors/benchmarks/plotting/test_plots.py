"""Plots of the benchmarks, and the budgets that they show."""

from pathlib import Path

import pytest

from actors.benchmarks.plotting.budgets import BUDGETS
from actors.benchmarks.plotting.plots import draw
from actors.benchmarks.run import BENCHMARKS, run
from actors.configuration.settings import SettingsRefused

GROWTH = {
    "name": "growth", "exponent": 0.7, "tasks_10000": 1e5, "tasks_200000": 2e6, "p50_ms_10000": 2.5,
    "p50_ms_200000": 21.0,
}  # fmt: skip


def test_every_budget_is_of_a_benchmark_that_there_is_and_stands_on_the_page() -> None:
    page = (Path(__file__).parents[5] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for one in BUDGETS:
        assert one.benchmark in BENCHMARKS
        assert f"`{one.benchmark}`" in page


def test_plots_show_growth_and_what_has_a_budget(tmp_path: Path) -> None:
    drawn = draw([GROWTH, {"name": "commit_100", "p50_ms": 6.0}], tmp_path)
    assert [one.name for one in drawn] == ["growth.svg", "budgets.svg"]
    growth, budgets = (one.read_text(encoding="utf-8") for one in drawn)
    assert "power 0.70" in growth
    assert "commit_100, p50_ms" in budgets
    assert "6 of 3" in budgets


def test_nothing_is_drawn_of_what_was_not_measured(tmp_path: Path) -> None:
    assert draw([{"name": "contention", "runs": 60}], tmp_path) == []


def test_a_folder_for_plots_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match="--plots: expected a folder"):
        run((), as_json=False, plots=tmp_path / "none")
