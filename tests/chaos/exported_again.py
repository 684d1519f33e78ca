"""A live state as a cluster file, while things go wrong: it decides what the state itself decides."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.ingestion.exported import cluster_document
from actors.ingestion.known.state import LiveState
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import cycle
from pipeline.policy import Policy

#: As many states of a run are exported, each with this likelihood at a turn.
_MOST, _LIKELY = 2, 0.1
#: What a statement does to tasks, and on which nodes.
_DOES = (("evictions", None), ("nominated", "nominated_node"), ("bound", "bound_node"))


@dataclass(frozen=True, slots=True)
class Exported:
    """A state, what its rows are called, and the file that was made of it at ``now`` (seconds)."""

    snapshot: Snapshot
    tasks: Sequence[str]
    nodes: Sequence[str]
    file: dict[str, Any]
    now: float

    @classmethod
    def of(cls, state: LiveState, now: float) -> Exported:
        """The state as it is exported now."""
        names = state.names
        return cls(state.snapshot, tuple(names.tasks), tuple(names.nodes), cluster_document(state, now), now)

    def objections(self, policy: Policy) -> Iterator[str]:
        """A sentence if the file decides otherwise."""
        compiled, names = compile_cluster(read_cluster(self.file))
        live = _decided(self.snapshot, self.tasks, self.nodes, policy, self.now)
        again = _decided(compiled, names.tasks, names.nodes, policy, self.now)
        if live != again:
            yield f"the state of revision {self.snapshot.revision} decides {live}, its file {again}"


class Exports:
    """The states of a run that are exported, as ``draw`` chooses."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self.kept: list[Exported] = []

    def note(self, state: LiveState, now: float) -> None:
        """A turn is over with this state."""
        if len(self.kept) < _MOST and self._draw.random() < _LIKELY and state.listed:
            self.kept.append(Exported.of(state, now))


def _decided(
    snapshot: Snapshot, tasks: Sequence[str], nodes: Sequence[str], policy: Policy, now: float
) -> list[tuple[str, list[list[tuple[str, str | None]]]]]:
    """What a cycle does, by names: rows have another order in the file."""
    found = []
    for made in cycle(snapshot, policy, now).statements:
        does = []
        for rows, on in _DOES:
            who = getattr(made, rows).tolist()
            where = getattr(made, on).tolist() if on is not None else [NONE] * len(who)
            named = ((tasks[row], nodes[at] if at != NONE else None) for row, at in zip(who, where, strict=True))
            does.append(sorted(named))
        found.append((made.action, does))
    return found
