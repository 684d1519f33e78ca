"""The actors of one fleet: how they are started, connected, watched and stopped.

Control actors reserve no processor; searchers share processors. An actor that dies is restarted by Ray and recovers as
at any start; its peers hold handles, which stay valid. Snapshots are sent by reference: a role that is behind fetches
only the newest.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import ray
from ray.exceptions import ActorDiedError, GetTimeoutError, RayActorError, RayError, RayTaskError

from actors.broker.retry import ToldToStop
from actors.contracts import Intake, Leadership
from actors.ray_runtime.cluster import RayRefused
from actors.ray_runtime.committer_actor import WAITING, CommitterActor
from actors.ray_runtime.dispatcher_actor import DispatcherActor
from actors.ray_runtime.ingestor_actor import IngestorActor
from actors.ray_runtime.limits import CALL_LIMIT_S, FETCH_LIMIT_S
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.searcher_actor import SearcherActor
from actors.ray_runtime.searcher_pool import searcher_name

log = logging.getLogger(__name__)

START_LIMIT_S = 300.0
#: Seconds between two looks whether a wait must end.
_LOOK_S = 0.25
#: The part of a processor that a searcher reserves: the searchers of a standby fit beside the leader's, and a searcher
#: whose machine died fits elsewhere.
_SEARCHER_CPUS = 0.5


class RoleActors:
    """The actors of one fleet, as the process that started them sees them."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self.searchers: list[Any] = []
        self._add_searchers()
        control: dict[str, Any] = {"num_cpus": 0, "max_restarts": -1, "max_concurrency": 16}
        waiting: dict[str, Any] = {"concurrency_groups": WAITING}
        committer: Any = ray.remote(**waiting)(CommitterActor)
        self.committer: Any = committer.options(name="committer", **control).remote(wiring)
        self.dispatcher: Any = ray.remote(DispatcherActor).options(name="dispatcher", **control).remote(wiring)
        self.ingestor: Any = ray.remote(IngestorActor).options(name="ingestor", **control).remote(wiring)
        self._starts: dict[Any, str] = {actor.ready.remote(): name for name, actor in self.by_name.items()}

    def _add_searchers(self) -> int:
        """Start missing searchers; returns how many. They share the processors with those of a standby."""
        processors = float(ray.cluster_resources().get("CPU", 1.0))  # type: ignore[no-untyped-call] # Ray's
        wanted = self._wiring.settings.searchers or max(1, int(processors))
        share = min(_SEARCHER_CPUS, int(100 * _SEARCHER_CPUS * processors / wanted) / 100)
        missing = range(len(self.searchers), wanted)
        self.searchers += [
            ray.remote(SearcherActor)
            .options(
                num_cpus=share, max_restarts=-1, max_task_retries=0, name=searcher_name(number),
                scheduling_strategy="SPREAD",
            )
            .remote(self._wiring, number)
            for number in missing
        ]  # fmt: skip
        return len(missing)

    def grow(self) -> int:
        """Add searchers for processors that joined the cluster, unless the settings state a number; how many."""
        added = self._add_searchers()
        if added:
            self.dispatcher.enlist.remote()
        return added

    def leadership(self, leads: bool | None, limit_s: float) -> Leadership | None:
        """Which service leads, by our committer; None if it does not answer. See `CommitterActor.leadership`.

        Raises
        ------
        RayRefused
            If it will never answer again.
        """
        try:
            found: Leadership = ray.get(
                self.committer.leadership.remote(leads, limit_s), timeout=limit_s + FETCH_LIMIT_S
            )
        except ActorDiedError as dead:
            raise RayRefused(why_gone(dead)) from dead
        except (RayActorError, GetTimeoutError):
            return None
        return found

    def intake(self) -> Intake | None:
        """What came in, by our ingestor; None if it does not answer."""
        try:
            found: Intake = ray.get(self.ingestor.intake.remote(), timeout=FETCH_LIMIT_S)
        except (RayActorError, GetTimeoutError):
            return None
        return found

    def cycling_s(self, limit_s: float) -> float | None:
        """For how long our dispatcher's cycle has run, in seconds; None if it does not answer within ``limit_s``."""
        try:
            found: float = ray.get(self.dispatcher.cycling_s.remote(), timeout=limit_s)
        except RayActorError:
            return 0.0  # it has died, and its cycle with it
        except GetTimeoutError:
            return None
        return found

    def figures(self, limit_s: float = 2.0) -> dict[str, list[Any]]:
        """The figures of the roles that answer within ``limit_s`` seconds, by role."""
        asked = {actor.figures.remote(): name for name, actor in self.by_name.items()}
        there, _ = ray.wait(list(asked), num_returns=len(asked), timeout=limit_s)
        found = {}
        for call in there:
            try:
                found[asked[call]] = ray.get(call)
            except RayError as lost:
                log.warning("%s did not report its figures: %s", asked[call], type(lost).__name__)
        return found

    @property
    def actors(self) -> list[Any]:
        """All of them, in the order in which they stop."""
        return [self.ingestor, self.dispatcher, *self.searchers, self.committer]

    @property
    def by_name(self) -> dict[str, Any]:
        """All of them by name."""
        searchers = {searcher_name(number): one for number, one in enumerate(self.searchers)}
        control = {"committer": self.committer, "dispatcher": self.dispatcher, "ingestor": self.ingestor}
        return {**control, **searchers}

    def await_ready(self, limit_s: float = START_LIMIT_S, stop: threading.Event | None = None) -> None:
        """Wait until every actor is there.

        Raises
        ------
        RayRefused
            When one did not start in time, or failed.
        ToldToStop
            When ``stop`` is set meanwhile.
        """
        asked, until = list(self._starts), time.monotonic() + limit_s
        while ray.wait(asked, num_returns=len(asked), timeout=_LOOK_S)[1] and time.monotonic() < until:
            if stop is not None and stop.is_set():
                raise ToldToStop
        try:
            ray.get(asked, timeout=0)
        except GetTimeoutError as late:
            raise RayRefused(f"the actors did not start within {limit_s:.0f} s: {self._why_late()}") from late
        except (RayActorError, RayTaskError) as failed:
            raise RayRefused(f"an actor failed to start: {str(failed).strip().splitlines()[-1]}") from failed

    def _why_late(self) -> str:
        """Why actors are missing: they wait for a processor, or only need more time."""
        asked = [actor.ready.remote() for actor in self.actors]
        waiting = ray.wait(asked, num_returns=len(asked), timeout=0.1)[1]
        total = float(ray.cluster_resources().get("CPU", 0.0))  # type: ignore[no-untyped-call] # Ray's
        free = float(ray.available_resources().get("CPU", 0.0))  # type: ignore[no-untyped-call] # Ray's
        left = f"{len(waiting)} of {len(asked)} are missing"
        if free < _SEARCHER_CPUS:
            return f"{left}, and of the cluster's {total:g} processors {free:g} are free"
        return f"{left}, and {free:g} processors are free: the machine is busy with other things"

    def await_listed(self, limit_s: float) -> None:
        """Wait until the fleet is known.

        Raises
        ------
        RayRefused
            If it is not listed within ``limit_s`` seconds.
        """
        if not ray.get(self.ingestor.listed.remote(limit_s), timeout=limit_s + CALL_LIMIT_S):
            raise RayRefused(f"the fleet was not listed within {limit_s:.0f} s")

    def flush(self) -> None:
        """Have every actor send the spans it holds."""
        ray.wait([actor.flush.remote() for actor in self.actors], num_returns=len(self.actors), timeout=5.0)

    def stop(self, limit_s: float = 15.0) -> None:
        """End in order: no more updates and cycles, then the lease is released; each step waits ``limit_s`` seconds.

        A role that still starts has nothing to end. It would hear of its end late, and others wait for its answers, so
        it is killed first.
        """
        _, starting = ray.wait(list(self._starts), num_returns=len(self._starts), timeout=0)
        late = [self._starts[call] for call in starting]
        steps = ({"ingestor": self.ingestor, "dispatcher": self.dispatcher}, {"committer": self.committer})
        for name in late:
            ray.kill(self.by_name[name])
        for together in steps:
            asked = {actor.stop.remote(): name for name, actor in together.items() if name not in late}
            there, left = ray.wait(list(asked), num_returns=len(asked), timeout=limit_s) if asked else ([], [])
            for call in there:
                try:
                    ray.get(call)
                except RayError as lost:
                    log.warning("%s did not stop cleanly: %s", asked[call], type(lost).__name__)
            for call in left:
                log.warning("%s did not stop within %.0f s", asked[call], limit_s)


def why_gone(dead: ActorDiedError) -> str:
    """Why Ray starts no other actor: it does as long as it knows that the owner lives, and while starts do not fail."""
    said = str(dead).strip()
    if "creation task" in said:
        return f"an actor ended and failed to start again: {said.splitlines()[-1]}"
    return "the actors are gone, and Ray starts no others for us: has this machine's Ray node died?"
