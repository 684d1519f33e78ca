"""The words of pages and sources: plain English, sources by title, and none of the names that the glossary gave up."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(path for top in ("pipeline", "actors") for path in (ROOT / top).rglob("*.py"))
TEXTS = [*PAGES, *SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "config").rglob("*.*")]
ODD = re.compile(
    r"\b(nobody|whoever|somebody|everybody|anybody|whom|so many|in vain|nought|of which|for the sake of|for ever"
    r"|(?:told|tell|tells|telling) of|cannot be meant|of one name|what of)\b",
    re.IGNORECASE,
)
#: Names that are a picture and not a word of the field, and what to say instead.
GIVEN_UP = {
    "appraisal": "pricing", "atoms": "segments", "bell": "wake-up", "beside": "rejudged",
    "describing": "podgroup events", "exchange": "contracts", "footprints": "lower bounds", "graft": "merge rows",
    "hands": "worker pool", "hunt": "plan batches", "important": "count at the highest priority",
    "laying": "node events", "nobody": "no rows", "outlook": "pending report", "patience": "retry",
    "relaying": "queue events", "scion": "delta",
    "standing": "counts, gang history, leadership, active or status", "standings": "queue shares", "station": "process",
    "trial": "what-if", "unfairness": "queue rank", "vain": "unplaced", "votes": "host", "whoever": "the one that",
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_in_plain_english(page: Path) -> None:
    text = re.sub(r"^```.*?^```|`[^`]*`|\*[^*]+\*", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert ODD.findall(text) == []


def test_a_source_is_in_plain_english() -> None:
    """With what it says to users: all of its text."""
    found = [f"{path.relative_to(ROOT)}: {odd}" for path in SOURCES for odd in ODD.findall(path.read_text())]
    assert found == []


def test_sources_are_named_by_title() -> None:
    this = Path(__file__).resolve()
    numbered = re.compile(r"\bdocuments? [1-5]\b", re.IGNORECASE)
    assert [str(path.relative_to(ROOT)) for path in TEXTS if path != this and numbered.search(path.read_text())] == []


def names(path: Path) -> Iterator[str]:
    """A module, and the functions, classes and arguments that it defines."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


@cache
def words_in(name: str) -> frozenset[str]:
    """The words of a name, in lower case; thousands of names stand in many places."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name))


def test_no_module_function_or_class_has_a_name_that_was_given_up() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}: say {GIVEN_UP[word]}"
        for path in SOURCES
        for name in names(path)
        for word in GIVEN_UP.keys() & words_in(name)
    ]
    assert found == []


def test_the_name_of_a_test_is_in_plain_english() -> None:
    odd = {"whoever", "whom", "nobody", "nobodys", "somebody", "anybody", "everybody", "vain"}
    named = [name for path in (ROOT / "tests").rglob("test_*.py") for name in defined("def", path)]
    assert len(named) > len(SOURCES)
    assert [name for name in named if name.startswith("test_") and odd & words_in(name)] == []


def defined(what: str, path: Path) -> list[str]:
    """The names behind ``def`` or ``class`` at the beginning of a line."""
    return re.findall(rf"^{what} (\w+)", path.read_text(), re.MULTILINE)


def test_a_class_name_means_one_thing() -> None:
    """Nor does one of a role differ from one of the core by its module alone: names are read without their paths."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        for name in defined("class", path):
            places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 100
    assert {name: there for name, there in places.items() if len(there) > 1} == {}


def test_a_function_of_the_core_has_one_meaning() -> None:
    """A call is read without its imports; only what all solvers are asked has one name in each."""
    solvers = (ROOT / "pipeline/solvers/registry.py").read_text()
    asked_of_solvers = set(re.findall(r"^    def (\w+)", solvers, re.MULTILINE))
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        if path.is_relative_to(ROOT / "pipeline"):
            for name in set(defined("def", path)):
                places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    shared = {name: there for name, there in places.items() if len(there) > 1 and not name.startswith("_")}
    assert len(shared.keys() & asked_of_solvers) > 3
    assert {name: there for name, there in shared.items() if name not in asked_of_solvers} == {}
