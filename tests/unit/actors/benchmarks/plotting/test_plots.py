"""Plots of the benchmarks, and the budgets that they show."""

from pathlib import Path

import pytest

from actors.benchmarks.plotting.budgets import BUDGETS
from actors.benchmarks.plotting.page import BEGIN, END, with_figures
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


def test_a_page_gets_the_figures_of_a_run_in_place_of_those_before() -> None:
    about = {"processor": "a processor", "cores": 2}
    results = [{"name": "commit_100", "p50_ms": 0.3, "runs": 50, "load_1m": 0.5}, {"name": "x", "not_available": "no"}]
    page = with_figures(f"head\n{BEGIN}\nold\n{END}\ntail\n", results, about, "2026-01-01", ["growth.svg"])
    assert page.startswith(f"head\n{BEGIN}\n2026-01-01: processor a processor, cores 2; load 0.5 to 0.5.\n")
    assert "![growth](growth.svg)" in page
    assert "| `commit_100` | 0.3 |  | 50 |  |" in page
    assert "| `x` |  |  |  | no |" in page
    assert "old" not in page
    assert page.endswith(f"{END}\ntail\n")
    with pytest.raises(ValueError, match="a page without them"):
        with_figures("no marks", results, about, "2026-01-01", [])


def test_a_page_or_a_folder_that_cannot_be_used_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match="--page: expected a file with the lines"):
        run((), as_json=False, page=tmp_path / "none.md")
    with pytest.raises(SettingsRefused, match=r"--peers: expected a folder with fleets\.py and"):
        run((), as_json=True, peers=tmp_path)
