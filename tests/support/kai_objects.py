"""Objects of KAI Scheduler, and the cluster file that they become."""

from pathlib import Path
from typing import Any

import yaml

from actors.imports.kai.config import run


def written(folder: Path, *texts: str) -> list[Path]:
    files = [folder / f"{at}.yaml" for at in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return files


def imported(folder: Path, *texts: str) -> dict[str, Any]:
    """The cluster file of some objects."""
    assert run(written(folder, *texts), None, folder / "cluster.yaml") == 0
    made: dict[str, Any] = yaml.safe_load((folder / "cluster.yaml").read_text())
    return made
