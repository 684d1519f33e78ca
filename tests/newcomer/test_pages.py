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

from actors.cli.commands import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
PROGRAM = re.compile(r"(?:^|\s)(?:\.venv/bin/)?clearway\s+(?=[a-z-])")
#: Words of prose in a block that begins with the program's name.
LINE = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?clearway [a-z-]")


def blocks(page: Path) -> Iterator[list[str]]:
    """The lines of each block of code."""
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), re.S | re.M):
        yield block.splitlines()


def commands() -> Iterator[tuple[str, str]]:
    """Each page with each command on it."""
    for page in PAGES:
        for block in blocks(page):
            for line in block:
                if LINE.match(line):
                    yield page.name, PROGRAM.split(line, maxsplit=1)[1].split(" | ")[0].split("  #")[0].strip()


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
