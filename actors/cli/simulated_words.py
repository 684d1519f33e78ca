"""The result of a simulation as text: the decisions of each cycle, and the explanations if they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from actors.cli.sentences import attempt_lines, condition_lines, decision_lines
from actors.documents.messages import on_one_line


def in_words(result: Mapping[str, Any]) -> str:
    """The result as lines of text."""
    lines = []
    for number, decided in enumerate(result["cycles"], 1):
        lines.append(f"cycle {number}")
        lines += [f"  evict    {e['task']}  ({e['action']} for {e['preemptor']})" for e in decided["evictions"]]
        lines += [f"  bind     {b['task']} -> {_place(b)}" for b in decided["bindings"]]
        lines += [f"  nominate {n['task']} -> {_place(n)}" for n in decided["nominations"]]
        if not any(decided.values()):
            lines.append("  nothing to do")
    if "explain" in result:
        lines += _why(result["explain"])
    return "".join(f"{on_one_line(line)}\n" for line in lines)


def _why(told: Mapping[str, Any]) -> Iterator[str]:
    for number, made in enumerate(told["decisions"], 1):
        yield from decision_lines(made, f"{number} in cycle {made['cycle']}")
    for name, condition in told["podgroups"].items():
        yield from condition_lines(condition, f"{name} is ")
        for attempt in condition["attempts"]:
            yield from attempt_lines(attempt)


def _place(said: Mapping[str, str]) -> str:
    return f"{said['node']}, {said['card']}" if "card" in said else said["node"]
