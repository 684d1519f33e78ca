"""``docs/extending.md`` says how to add a thing: three files at most, and then the program does it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.plugins.registry import PLUGINS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "extending.md").read_text()
MOST = 3
DAY_S = 86_400.0
SECTIONS = ("An action", "A solver", "A plugin")


def blocks(section: str) -> list[tuple[str, str, str]]:
    """The changes that a section of the page shows: language, path and text of each block."""
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert text is not None, f"docs/extending.md has no section {section!r}"
    return re.findall(r"^```(\w+)\n# (\S+)\n(.*?)^```", text[1], re.DOTALL | re.MULTILINE)


def patched(source: str, change: str) -> str:
    """A source with the lines of a diff taken out and put in; each added line follows the one above it."""
    lines, at = source.splitlines(), -1
    for one in change.splitlines():
        sign, line = one[0], one[1:]
        if sign == "+":
            at += 1
            lines.insert(at, line)
            continue
        assert lines.count(line) == 1, f"expected one line {line!r}"
        at = lines.index(line)
        if sign == "-":
            del lines[at]
            at -= 1
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with their bytecode, and the configuration, without machine code."""
    here = tmp_path_factory.mktemp("sources")
    for folder in ("pipeline", "actors", "config"):
        shutil.copytree(ROOT / folder, here / folder, ignore=shutil.ignore_patterns("*.nb[ci]"))
    shutil.copy(ROOT / "pyproject.toml", here)
    return here


@pytest.fixture
def copied(pristine: Path) -> Iterator[Path]:
    """The same, and again as it was when the test has ended."""
    kept = {path: path.read_bytes() for path in sources_in(pristine)}
    yield pristine
    for path in sources_in(pristine):
        if path not in kept:
            path.unlink()
        elif path.read_bytes() != kept[path]:
            path.write_bytes(kept[path])


def sources_in(folder: Path) -> list[Path]:
    """Its files but for bytecode, which Python makes anew where a source has changed."""
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def extended(copied: Path, section: str) -> Path:
    """Make the changes of a section; returns the profile that it writes."""
    made = blocks(section)
    assert 1 <= len({path for _, path, _ in made}) <= MOST
    for language, path, text in made:
        file = copied / path
        assert file.exists() == (language == "diff"), f"{path}: a new file is shown whole, a known one as a diff"
        file.write_text(patched(file.read_text(), text) if language == "diff" else text)
    return next(copied / path for language, path, _ in made if language == "toml")


def run(copied: Path, *command: object) -> "subprocess.CompletedProcess[str]":
    """A command in the folder of the changed sources."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=copied, env={**os.environ, "PYTHONPATH": str(copied), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def decided(copied: Path, profile: str, cluster: dict[str, Any]) -> dict[str, Any]:
    """What the changed program decides."""
    file = copied / "cluster.json"
    file.write_text(json.dumps(cluster))
    ran = run(copied, sys.executable, "-m", "actors", "simulate", file, "--profile", profile)
    assert ran.returncode == 0, ran.stderr
    said: dict[str, Any] = json.loads(ran.stdout)
    return said


def cluster(*podgroups: dict[str, Any]) -> dict[str, Any]:
    """One node with room for one task."""
    return {
        "version": 1,
        "now": 2 * DAY_S,
        "nodes": [{"name": "n0", "allocatable": {"cpu": 1, "pods": 110}}],
        "queues": [{"name": "ml"}],
        "podgroups": list(podgroups),
    }


def podgroup(name: str, status: str, **keys: Any) -> dict[str, Any]:
    """A podgroup of one task."""
    task = {"name": name, "request": {"cpu": 1}, "status": status} | ({"node": "n0"} if status == "Running" else {})
    return {"name": name, "queue": "ml", "min_available": 1, "tasks": [task], **keys}


def evicted(said: dict[str, Any]) -> list[str]:
    return [one["task"] for cycle in said["cycles"] for one in cycle["evictions"]]


#: Runs a cycle over a cluster file, and says what the committer's judge answers to each of its plans.
JUDGED = """
import json, sys
from actors.cli.simulate import open_case
from pipeline.cycle import cycle
from pipeline.judge import judge
case = open_case(json.load(open(sys.argv[1])), sys.argv[2])
plans = cycle(case.snapshot, case.policy, case.now).plans
print(json.dumps([type(judge(plan, case.snapshot, case.policy, case.now)).__name__ for plan in plans]))
"""


def judged(copied: Path, profile: str, cluster: dict[str, Any]) -> list[str]:
    """How each plan of a cycle of the changed program is judged, by the name of the verdict."""
    file = copied / "cluster.json"
    file.write_text(json.dumps(cluster))
    ran = run(copied, sys.executable, "-c", JUDGED, file, profile)
    assert ran.returncode == 0, ran.stderr
    verdicts: list[str] = json.loads(ran.stdout)
    return verdicts


def pair(name: str, second: str) -> dict[str, Any]:
    """A podgroup of two tasks that needs both; one runs, the other is as ``second`` says."""
    group = podgroup(name, "Running")
    other = {"name": f"{name}-2", "request": {"cpu": 1}, "status": second}
    return {**group, "min_available": 2, "tasks": [*group["tasks"], other]}


def test_what_the_page_adds_keeps_the_rules_of_imports(copied: Path) -> None:
    for section in SECTIONS:
        extended(copied, section)
    rules = run(copied, Path(sys.executable).with_name("lint-imports"), "--no-cache")
    assert rules.returncode == 0, rules.stdout


def test_an_action_is_added_in_three_files_and_runs(copied: Path) -> None:
    profile = extended(copied, "An action")
    assert evicted(decided(copied, profile.stem, cluster(pair("lost", "Failed")))) == ["default/lost"]
    assert evicted(decided(copied, profile.stem, cluster(pair("waiting", "Pending")))) == []


def test_what_the_action_of_the_page_decides_is_accepted_by_the_judge(copied: Path) -> None:
    profile = extended(copied, "An action")
    assert judged(copied, profile.stem, cluster(pair("lost", "Failed"))) == ["Accepted"]


def test_a_solver_is_added_in_three_files_and_is_asked(copied: Path) -> None:
    profile = extended(copied, "A solver")
    full = cluster(podgroup("low", "Running"), podgroup("high", "Pending", priority=10))
    assert evicted(decided(copied, profile.stem, full)) == []
    profile.write_text(profile.read_text().replace('"spare"', '"bundles"'))
    assert evicted(decided(copied, profile.stem, full)) == ["default/low"]


def test_the_solver_of_the_page_has_every_function_that_is_asked_of_one(copied: Path) -> None:
    extended(copied, "A solver")
    asks = "from pipeline.solvers.registry import SOLVERS, Solver; "
    asks += "print([name for name in vars(Solver) if name[0] != '_' and not hasattr(SOLVERS['spare'], name)])"
    assert run(copied, sys.executable, "-c", asks).stdout == "[]\n"


def test_a_plugin_is_added_in_three_files_and_votes(copied: Path) -> None:
    profile = extended(copied, "A plugin")
    full = [
        cluster(podgroup("low", "Running", started=started), podgroup("high", "Pending", priority=10))
        for started in (0.0, 1.75 * DAY_S)
    ]
    assert [evicted(decided(copied, profile.stem, one)) for one in full] == [[], ["default/low"]]


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)
def test_a_plugin_is_known_to_its_own_place_and_the_registry_alone(plugin: type) -> None:
    # A plugin that is a folder is one place.
    module = ".".join(plugin.__module__.split(".")[:3])
    own = ROOT.joinpath(*module.split("."))
    naming = re.compile(rf"\b{re.escape(module)}\b")
    others = [
        path.relative_to(ROOT).as_posix()
        for path, text in sources().items()
        if path != own.with_suffix(".py") and own not in path.parents and module in text and naming.search(text)
    ]
    assert others == ["pipeline/plugins/registry.py"]


@cache
def sources() -> dict[Path, str]:
    """The text of every source."""
    return {path: path.read_text() for folder in ("pipeline", "actors") for path in (ROOT / folder).rglob("*.py")}
