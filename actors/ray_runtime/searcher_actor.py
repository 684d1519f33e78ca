"""A searcher as a Ray actor."""

from __future__ import annotations

from collections.abc import Sequence

from actors.contracts import Batch, Searched
from actors.ray_runtime.process import RoleProcess, Wiring
from actors.ray_runtime.searcher_pool import searcher_name
from actors.ray_runtime.warm import warm_up
from actors.search.searcher import Searcher
from pipeline.cluster.snapshot import Snapshot


class SearcherActor(RoleProcess):
    """A searcher in a process of its own."""

    def __init__(self, wiring: Wiring, number: int) -> None:
        super().__init__(wiring, searcher_name(number))
        warm_up()
        self._searcher = Searcher(wiring.policy, self.telemetry)

    def search(self, snapshot: Snapshot, batches: Sequence[Batch]) -> list[Searched]:
        """See `Searcher.search`."""
        return self._searcher.search(snapshot, batches)

    def probed(self) -> tuple[Searched, ...]:
        """Answers once there is nothing else to do."""
        return ()
