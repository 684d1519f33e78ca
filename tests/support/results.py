"""The part of a page that is written anew whenever its results are measured: what stands between its marks."""

from pathlib import Path

_BEGIN, _END = "<!-- results -->\n", "<!-- end of results -->\n"


def put_results(page: Path, results: str) -> None:
    """Put the results, whole lines, between the marks of a page; a page that has none, or is not there, gets them."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    before, _, rest = text.partition(_BEGIN)
    page.write_text(before + _BEGIN + results + _END + rest.partition(_END)[2], encoding="utf-8")


def results_of(page: str) -> str:
    """What stands between the marks of a page; nothing if it has none."""
    return page.partition(_BEGIN)[2].partition(_END)[0]
