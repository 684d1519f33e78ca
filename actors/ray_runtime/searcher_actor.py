"""A searcher as a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.contracts import Batch, Searched
from actors.documents.collector import settle
from actors.ray_runtime.limits import CALL_LIMIT_S
from actors.ray_runtime.process import RoleProcess, Wiring
from actors.ray_runtime.searcher_pool import searcher_name
from actors.ray_runtime.transport.snapshot_store import SnapshotStore
from actors.search.searcher import Searcher
from actors.warming.warm import load


class SearcherActor(RoleProcess):
    """A searcher in a process of its own."""

    def __init__(self, wiring: Wiring, number: int) -> None:
        super().__init__(wiring, searcher_name(number))
        load(wiring.policy)
        settle()
        self._store = SnapshotStore()
        self._searcher = Searcher(wiring.policy, self.telemetry)

    def search(self, reference: list[Any], batches: Sequence[Batch]) -> list[Searched]:
        """See `Searcher.search`. What is derived from a snapshot is kept for the next batches on it."""
        return self._searcher.search(self._store.fetch(reference[0], CALL_LIMIT_S), batches)

    def probed(self) -> tuple[Searched, ...]:
        """Answer, once there is nothing else to do."""
        return ()
