"""Reports put what they measured between the marks of a page."""

from pathlib import Path

from tests.support.results import put_results, results_of


def test_results_replace_those_of_the_page_and_leave_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "peers.md"
    page.write_text("# Peers\n<!-- results -->\nold\n<!-- end of results -->\nafter\n")
    put_results(page, "| new |\n")
    assert page.read_text() == "# Peers\n<!-- results -->\n| new |\n<!-- end of results -->\nafter\n"


def test_a_page_that_is_not_there_is_made_of_the_results(tmp_path: Path) -> None:
    page = tmp_path / "elsewhere.md"
    put_results(page, "| new |\n")
    assert results_of(page.read_text()) == "| new |\n"
