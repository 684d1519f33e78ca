"""A line of ``ARCHITECTURE.md`` for each folder, in the order of the import rules; links and paths that exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: Pages that speak of the program as it is; a decision that was replaced speaks of its own time.
OF_TODAY = [page for page in PAGES if "Replaced by" not in page.read_text()]
#: Files that are no idea of their own.
ENTRANCES = {"__init__", "__main__"}


def named(package: str) -> list[str]:
    """What the page's table of a package names, from the top."""
    text = re.search(rf"^\| `{package}/`, from the top \| \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert text is not None, f"ARCHITECTURE.md has no table of {package}/"
    return [name for row in text[1].splitlines() for name in re.findall(r"`(\w+)/?`", row.split("|")[1])]


def layer_of(package: str) -> dict[str, int]:
    """The layer of each module of a package by the import rules, 0 at the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [package])
    return {name: at for at, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}


@pytest.mark.parametrize("package", ["pipeline", "actors"])
def test_every_folder_has_its_line_and_every_line_its_folder(package: str) -> None:
    there = {path.stem for path in (ROOT / package).iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert sorted(named(package)) == sorted(there - ENTRANCES)


@pytest.mark.parametrize("package", ["pipeline", "actors"])
def test_the_lines_stand_in_the_order_of_the_layers(package: str) -> None:
    layers = [layer_of(package)[name] for name in named(package)]
    assert layers == sorted(layers)


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub links to them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target}: no such file"
        assert not anchor or anchor in anchors(there), f"{target}: no such heading"


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    paths = re.findall(r"`((?:pipeline|actors|tests|config|deploy|docs)/[\w./*-]+)`", page.read_text())
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []


def test_a_decision_names_those_that_replace_change_or_complete_it_and_the_list_says_which_are_replaced() -> None:
    heads = {
        int(path.name[:4]): re.sub(r"\(.*?\)", "", path.read_text().partition("\n**")[0])
        for path in (ROOT / "docs" / "decisions").glob("0*.md")
    }
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for number, head in heads.items():
        marked = re.search(rf"^\| \[{number}\]\(.*\(replaced by", index, re.MULTILINE) is not None
        assert marked is ("Replaced" in head), f"{number}: the list of decisions says otherwise"
        for said in re.findall(r"(?:Replaces|replaces|Changes|Completes) ([^.;:]*)", head):
            for earlier in re.findall(r"\d+", said):
                assert re.search(rf"\b{number}\b", heads[int(earlier)]), f"{earlier} does not name {number}"
