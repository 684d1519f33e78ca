"""Every command that a page shows is one that the program understands, and what stands below it is what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from actors.cli.commands import app
from tests.support.pages import ASKING, LASTING, PAGES, ROOT, blocks, commands

#: Commands that read and write files only.
WITHOUT_BROKER = sorted({words for _, words in commands() if words.split()[0] not in {*ASKING, *LASTING}})
MANIFESTS = ROOT / "tests" / "unit" / "actors" / "imports" / "kubernetes" / "manifests"
VOLCANO = """
actions: "allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
"""
KAI = """
actions: "allocate, consolidation, reclaim, preempt, stalegangeviction"
tiers:
- plugins: [{name: predicates}, {name: proportion}, {name: priority}, {name: elastic}]
"""
KAI_QUEUE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: research}
spec: {resources: {gpu: {quota: 8, limit: -1, overQuotaWeight: 1}}}
"""
GANG = """
name: asked
queue: ml
min_available: 3
tasks: [{name: asked, count: 3, request: {cpu: 8, nvidia.com/gpu: 8}}]
"""


def shown() -> Iterator[tuple[str, str]]:
    """Commands that need no broker, with the text below them."""
    for page in PAGES:
        for block in blocks(page):
            starts = [at for at, line in enumerate(block) if line.startswith("$ ")] + [len(block)]
            for at, end in pairwise(starts):
                line = block[at][2:]
                if re.match(r"(?:\.venv/bin/)?clearway (simulate|plan) ", line) and "gang.yaml" not in line:
                    yield line, "\n".join(block[at + 1 : end]) + "\n"


@pytest.mark.parametrize(("page", "words"), sorted(set(commands())))
def test_a_command_on_a_page_is_understood(page: str, words: str) -> None:
    del page
    group = typer.main.get_command(app)
    name, *arguments = shlex.split(words, comments=True)
    while name in group.commands and hasattr(group.commands[name], "commands"):
        group = group.commands[name]
        name, *arguments = arguments
    assert name in group.commands, f"no command {name}"
    with group.commands[name].make_context(name, list(arguments)):
        pass


def test_pages_show_commands() -> None:
    assert len(set(commands())) > 10
    assert len(list(shown())) >= 2


@pytest.mark.parametrize(("line", "text"), [*shown()])
def test_what_a_page_shows_is_what_the_program_says(line: str, text: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line.replace(".venv/bin/", "")], cwd=ROOT, env={**os.environ, "PATH": path}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.stdout == text, done.stderr


@pytest.mark.parametrize(("name", "file"), LASTING.items())
def test_a_command_on_a_page_that_lasts_is_started_elsewhere(name: str, file: str) -> None:
    assert name in {words.split()[0] for _, words in commands()}
    text = (ROOT / file).read_text()
    assert f'"{name}"' in text or f"clearway {name}" in text


def of_kind(kind: str) -> str:
    """Koordinator's objects of one kind."""
    objects = yaml.safe_load_all((MANIFESTS / "koordinator.yaml").read_text())
    return yaml.safe_dump_all([one for one in objects if one["kind"] == kind])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that commands on pages name, with what their pages say of them."""
    files = {
        "dump.yaml": (MANIFESTS / "volcano.yaml").read_text(), "gang.yaml": GANG, "queues.yaml": KAI_QUEUE,
        "volcano-scheduler.yaml": VOLCANO, "scheduler-config.yaml": KAI,
        "mine.toml": (ROOT / "config" / "profiles" / "default.toml").read_text(),
        "cluster.yaml": (ROOT / "config" / "examples" / "two_racks.yaml").read_text(),
        "topology.yaml": of_kind("ClusterNetworkTopology"), "nodes/a.yaml": of_kind("Node"),
    }  # fmt: skip
    (tmp_path / "nodes").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "config").symlink_to(ROOT / "config")
    return tmp_path


@pytest.mark.parametrize("words", WITHOUT_BROKER)
def test_a_command_on_a_page_that_needs_no_broker_runs(
    words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = words.partition("--out ")[2].partition(" ")[0]
    if new:
        (folder / new).unlink()  # nothing is written over
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, shlex.split(words))
    assert done.exit_code in (0, 1), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.stdout or (folder / new).exists(), done.output
