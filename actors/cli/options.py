"""Options that several commands share, and what is asked of an option's value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from actors.documents.messages import meant, offences_in, sentence

RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis-url",
        help="Broker to use: redis://, rediss:// or unix://. Default: the settings'; without one, the command starts "
        "its own.",
    ),
]
BrokerUrl = Annotated[
    str | None,
    typer.Option("--redis-url", help="Broker of the fleet: redis://, rediss:// or unix://. Default: the settings'."),
]
RayAddress = Annotated[
    str | None, typer.Option("--ray-address", help="Ray cluster to join. Default: one started for this process.")
]
FleetName = Annotated[str | None, typer.Option("--fleet", help="Name of the fleet. Default: the settings'.")]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="TOML file instead of config/runtime.toml.")]
Profile = Annotated[
    str | None,
    typer.Option("--profile", help="Policy: default, volcano, kai, koordinator, or the path of a .toml file."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
Inventory = Annotated[Path | None, typer.Option("--inventory", help="Inventory of the simulated fleet (YAML).")]


class Commands(TyperGroup):
    """The commands: refuses words that are empty, and says of a value that is refused what was found."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty words: an empty path would be the current folder, and a variable that is unset gives one."""
        for before, word in pairwise(("clearway", *args)):
            if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
                raise typer.BadParameter(f"expected a value, found an empty one after {(word or before)!r}")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as refusal:
            if isinstance(refusal.__cause__, ValidationError):
                refusal.message = sentence(offences_in(refusal.__cause__)[0], "")
            raise


def finite(value: float | None) -> float | None:
    """Refuse infinity, which a range without an upper end lets through; NaN is in no range."""
    if value == math.inf:
        raise typer.BadParameter("expected a finite number, found inf")
    return value


def among(value: str, known: Sequence[str], where: str) -> None:
    """Refuse a value that is not one of those known; ``where`` is the name of the option or argument."""
    if value not in known:
        told = f"expected one of {', '.join(known)}"
        raise typer.BadParameter(f"{told}, found {value!r}{meant(told, value)}", param_hint=where)
