"""One cluster file through `clearway simulate`, as the command runs it."""

from collections.abc import Mapping
from typing import Any

from actors.cli.simulate import SimulateOptions, simulated


def simulate(
    document: Mapping[str, Any], cycles: int | None = None, profile: str | None = None, *, explain: bool = False
) -> dict[str, Any]:
    """The result of a cluster file, given as plain data."""
    return simulated(document, SimulateOptions(cycles, profile, explain=explain))
