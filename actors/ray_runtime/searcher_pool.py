"""The searchers of one fleet as Ray actors, behind the port of `scatter`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

import ray
import ray.util
from ray.exceptions import RayError

from actors.contracts import Batch, Searched
from actors.ray_runtime.transport.snapshot_store import SnapshotStore
from actors.search.scatter import Call
from pipeline.cluster.snapshot import Snapshot

log = logging.getLogger(__name__)

PREFIX = "searcher-"
#: Seconds to fetch an answer: it may be on a machine that is gone.
_FETCH_LIMIT_S = 2.0


def searcher_name(number: int) -> str:
    """The name of an actor within its fleet's namespace."""
    return f"{PREFIX}{number}"


class RaySearchers:
    """Implements `scatter.SearcherPool`. Actors are looked up by name: a handle does not outlive its maker."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._actors: dict[str, Any] = {}

    @staticmethod
    def names() -> list[str]:
        """The present searchers."""
        return sorted(name for name in ray.util.list_named_actors() if name.startswith(PREFIX))

    def ask(self, searcher: str, snapshot: Snapshot, batches: Sequence[Batch]) -> Call:
        """See the port. The snapshot goes by reference, and once to each machine."""
        # In a list: Ray would fetch a bare reference for the searcher, which keeps its columns itself.
        call: Call = self._actor(searcher).search.remote([self._store.publish(snapshot)], batches)
        return call

    def probe(self, searcher: str) -> Call:
        """See the port. It outlasts a restart, so it ends when the searcher is back."""
        call: Call = self._actor(searcher).probed.options(max_task_retries=-1).remote()
        return call

    def ended(self, calls: Sequence[Call], limit_s: float) -> Collection[Call]:
        """See the port."""
        ray.wait(list(calls), num_returns=1, timeout=limit_s, fetch_local=False)
        done: list[Call]
        done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0, fetch_local=False)
        return done

    def answer(self, call: Call) -> Sequence[Searched] | None:
        """See the port."""
        try:
            found: Sequence[Searched] = ray.get(call, timeout=_FETCH_LIMIT_S)  # type: ignore[call-overload] # a reference
        except RayError as lost:
            log.warning("a searcher did not answer: %s", str(lost).strip().splitlines()[-1])
            return None
        return found

    def replace(self, searcher: str) -> None:
        """See the port."""
        ray.kill(self._actor(searcher), no_restart=False)

    def _actor(self, searcher: str) -> Any:
        if searcher not in self._actors:
            self._actors[searcher] = ray.get_actor(searcher)
        return self._actors[searcher]
