"""The processes that one of ours has started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def descendants(root: int) -> Iterator[int]:
    """Ids of all processes that come from process ``root``, children before grandchildren, as ``/proc`` has them."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    wave = [root]
    while wave:
        wave = [child for parent in wave for child in children.get(parent, ())]
        yield from wave
