"""The commands that README and the pages of docs show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
PROGRAM = re.compile(r"(?:^|\s)(?:\.venv/bin/)?clearway\s+(?=[a-z-])")
#: Words of prose in a block that begins with the program's name.
LINE = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?clearway [a-z-]")
#: What stands for the podgroups that pages name.
PODGROUP = "PODGROUP"
#: Commands that ask a service that runs.
ASKING = frozenset({"explain", "get", "top", "export"})
#: Commands that run until they are told to end, or for minutes: where each of them is started, by a test or before all.
LASTING = {
    "run": "tests/integration/test_service.py",
    "fleet": "tests/integration/test_service.py",
    "check-connector": "tests/integration/test_check_connector.py",
    "warm": "Makefile",
}


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


def asking() -> list[list[str]]:
    """The words of every command on a page that asks a service, without its broker, its fleet and its podgroup."""
    bare = {re.sub(r" --(redis-url|fleet) \S+", "", words) for _, words in commands()}
    bare = {re.sub(r" default/\S+", f" {PODGROUP}", words) for words in bare}
    return [words.split() for words in sorted(bare) if words.split()[0] in ASKING]
