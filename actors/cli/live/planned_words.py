"""What would become of a gang, as text: see `plan.planned`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from actors.cli.sentences import NAMED, attempt_lines, condition_lines, decision_lines, many

#: When a gang starts.
AT_ONCE, LATER, NO = "at once", "after evictions", "no"


def in_words(told: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What would become of the gang, for each wish."""
    for one in told:
        head = f"{one['podgroup']} in queue {one['queue']} at priority {one['priority']}"
        if one["starts"] == NO:
            yield f"{head} does not start"
            yield from _waits(one["waits"], one["waiting"])
            continue
        where = f" in {one['domain']}" if one["domain"] else ""
        yield f"{head} starts {_after(one['evictions'])}{where}"
        yield from _some([_taken(each) for each in one["evictions"]], "task")
        yield from _some([f"  starts {each['task']} on {each['node']}" for each in one["places"]], "task")
        for made in one["decisions"]:
            if made["evicts"]:
                yield from (f"  {line}" for line in list(decision_lines(made, "to be"))[1:])


def _after(evictions: Sequence[Mapping[str, str]]) -> str:
    moves = sum("to" in each for each in evictions)
    counts = ((len(evictions) - moves, "eviction"), (moves, "move"))
    said = " and ".join(many(count, word) for count, word in counts if count)
    return f"after {said}" if said else AT_ONCE


def _taken(each: Mapping[str, str]) -> str:
    if "to" in each:
        return f"  moves {each['task']} from {each['node']} to {each['to']}"
    return f"  evicts {each['task']} on {each['node']}"


def _some(lines: Sequence[str], word: str) -> Iterator[str]:
    yield from lines[:NAMED]
    if len(lines) > NAMED:
        yield f"  and {many(len(lines) - NAMED, f'more {word}')}"


def _waits(condition: Mapping[str, Any] | None, waiting: int) -> Iterator[str]:
    """Why it does not start; without a condition, its minimum is met or nothing of it could start."""
    if condition is None and waiting:
        yield f"  its minimum is met as it is, and no room was found for {many(waiting, 'task')} beyond it"
    elif condition is None:
        yield "  it has no task that waits for a node"
    if condition is None:
        return
    yield from condition_lines(condition)
    for attempt in condition["attempts"]:
        yield from attempt_lines(attempt)
