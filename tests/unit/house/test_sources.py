"""House rules about the sources that no linter knows."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAX_LINES = 400
VAGUE = {"base", "common", "core", "helper", "helpers", "manager", "misc", "util", "utils"}
IMPURE_CALLS = {"eval", "exec", "input", "open", "print"}
IMPURE_NUMPY = {"fromfile", "genfromtxt", "load", "loadtxt", "memmap", "random", "save", "savetxt", "savez"}

SOURCES = sorted(
    path.relative_to(ROOT) for top in ("pipeline", "actors", "tests") for path in (ROOT / top).rglob("*.py")
)
CORE = [path for path in SOURCES if path.parts[0] == "pipeline"]


def impurities(tree: ast.AST) -> list[str]:
    """Calls that read, write or draw at random, as ``line: name``."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            found.append(f"{node.lineno}: {node.func.id}()")
        if isinstance(node, ast.Attribute) and node.attr in IMPURE_NUMPY and ast.unparse(node.value) in {"np", "numpy"}:
            found.append(f"{node.lineno}: numpy.{node.attr}")
        if isinstance(node, ast.Global):
            found.append(f"{node.lineno}: global {', '.join(node.names)}")
    return found


def test_the_core_reads_writes_and_draws_nothing() -> None:
    found = {str(path): impurities(ast.parse((ROOT / path).read_text())) for path in CORE}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line", ["open('x')", "print(1)", "np.random.default_rng()", "numpy.load('x')", "def f():\n    global x\n    x = 1"]
)
def test_an_impure_line_is_noticed(line: str) -> None:
    assert len(impurities(ast.parse(line))) == 1


def test_a_file_holds_one_idea_under_a_name_that_says_which() -> None:
    lines = {str(path): len((ROOT / path).read_text().splitlines()) for path in SOURCES}
    assert {path: many for path, many in lines.items() if many > MAX_LINES} == {}, "two ideas in one file?"
    assert [str(path) for path in SOURCES if path.stem in VAGUE] == []


def test_what_a_file_names_is_described_in_front_of_it() -> None:
    """By ``#:``, not by a string behind it."""
    behind = [
        f"{path}:{line.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for line in node.body[1:]
        if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
    ]
    assert behind == []


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    barred = re.compile(r"\bpytest\.(skip|xfail|importorskip)\b|\bmark\.(skip|skipif|xfail)\b")
    this = Path(__file__).relative_to(ROOT)
    tests = [path for path in SOURCES if path.parts[0] == "tests" and path != this]
    assert [str(path) for path in tests if barred.search((ROOT / path).read_text())] == []


def test_what_several_pure_tests_use_is_in_support() -> None:
    borrowing = re.compile(r"^from tests\.[\w.]+\.test_\w+ import", re.MULTILINE)
    pure = [path for path in SOURCES if path.parts[:2] in [("tests", one) for one in ("unit", "property", "support")]]
    assert [str(path) for path in pure if borrowing.search((ROOT / path).read_text())] == []


def test_configuration_holds_no_python() -> None:
    assert list((ROOT / "config").rglob("*.py")) == []


def constraints() -> dict[str, str]:
    """Pinned name to version; a line that pins nothing would not unpack."""
    lines = (ROOT / "constraints.txt").read_text().split()
    return {canonical(name): version for name, version in (line.split("==") for line in lines)}


def canonical(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_pinned_by_version_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    names = {canonical(re.match(r"[\w.-]+", requirement)[0]) for requirement in wanted}
    pinned = constraints()
    assert names - pinned.keys() == set()
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.]*", version) for version in pinned.values())


@pytest.mark.parametrize("top", ["pipeline", "actors"])
def test_a_folder_holds_about_a_dozen_files(top: str) -> None:
    folders = {path.parent for path in SOURCES if path.parts[0] == top} - {Path("pipeline/plugins")}
    files = {folder: [path for path in SOURCES if path.parent == folder] for folder in sorted(folders)}
    assert {str(folder): len(there) for folder, there in files.items() if len(there) > 15} == {}
