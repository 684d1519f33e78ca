"""The report of a replay: rows of measures, and the rules that were broken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

_SHOWN = 6


@dataclass(frozen=True)
class ReplayReport:
    """The results of a replay.

    Attributes
    ----------
    scenario, replayed
        The scenario, and the part of the recording.
    rows
        One mapping for each decision or group of measures; plain data.
    broken
        One sentence for each invariant that was broken; should be empty.
    """

    scenario: str
    replayed: str
    rows: Sequence[Mapping[str, Any]]
    broken: tuple[str, ...]

    def as_json(self) -> str:
        """The report as one JSON object."""
        return json.dumps(asdict(self), indent=2)

    def as_text(self) -> str:
        """The report as text for people."""
        lines = [f"scenario {self.scenario}: {self.replayed}"]
        for row in self.rows:
            lines.append("")
            pairs = [(str(name).replace("_", " "), said(value)) for name, value in row.items() if name != "broken"]
            width = max((len(name) for name, _ in pairs), default=0)
            lines += [f"  {name:<{width}}  {value}" for name, value in pairs]
        lines += ["", *(f"BROKEN: {sentence}" for sentence in self.broken)]
        if not self.broken:
            lines.append("no invariant was broken")
        return "\n".join(lines)


def said(value: Any) -> str:
    """A measure in words."""
    if isinstance(value, Mapping):
        return ", ".join(_shortened([f"{name} {_inner(one)}" for name, one in value.items()])) or "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(_shortened([_entry(one) for one in value])) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _inner(value: Any) -> str:
    return f"({said(value)})" if isinstance(value, Mapping) else said(value)


def _entry(value: Any) -> str:
    """An entry of a list; a mapping as its values side by side."""
    return " ".join(map(said, value.values())) if isinstance(value, Mapping) else said(value)


def _shortened(parts: Sequence[str]) -> Iterator[str]:
    yield from parts[:_SHOWN]
    if len(parts) > _SHOWN:
        yield f"and {len(parts) - _SHOWN} more"
