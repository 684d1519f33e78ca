"""The plot of the README shows what the page on peers says."""

from pathlib import Path

from tests.peers.plot import draw, points

DOCS = Path(__file__).parents[3] / "docs"


def test_the_plot_shows_the_figures_of_the_page() -> None:
    shown, drawn = points((DOCS / "peers.md").read_text()), (DOCS / "peers.svg").read_text()
    assert len(shown) > 5
    for one in shown:
        told = (one.label, f"{one.theirs_s:.3g} s", f"{one.ours_s:.3g} s", f"{one.ours_lost:,.0f}")
        assert [text for text in told if f">{text}</text>" not in drawn] == []


def test_the_plot_is_drawn_alike_each_time(tmp_path: Path) -> None:
    shown = points((DOCS / "peers.md").read_text())
    for name in ("one.svg", "other.svg"):
        draw(shown, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
