"""The list of faults, which is data: ``*.toml`` in this folder."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.mutants.run import Mutant


def listed() -> list[Mutant]:
    """All of them, file by file."""
    return [
        Mutant(said["about"], said["file"], said["old"], said["new"], tuple(said["tests"]))
        for file in sorted(Path(__file__).parent.glob("*.toml"))
        for said in tomllib.loads(file.read_text(encoding="utf-8"))["mutant"]
    ]
