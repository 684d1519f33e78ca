"""The podgroup, purpose and state for which it is asked what stands in the way."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Longs, Rows, mask_of, sealed
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Reason
from pipeline.keeping import cached_property
from pipeline.placement.domains import required_domains
from pipeline.placement.need import Need, need_of
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Purpose


@dataclass(frozen=True)
class Question:
    """A failed attempt.

    Attributes
    ----------
    host
        The plugins on the attempt's snapshot, policy and clock.
    point
        Where the plugins were asked about victims: at EVICTABLE about gangs, else about single tasks.
    reason
        Why there is no plan, as the solver says.
    """

    attempt: Attempt
    host: Host
    point: ExtensionPoint
    reason: Reason

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that was searched."""
        return self.attempt.snapshot

    @property
    def purpose(self) -> Purpose:
        """Why others would be evicted."""
        return self.attempt.purpose

    @property
    def by_task(self) -> bool:
        """Whether room was sought task by task."""
        return self.point is not ExtensionPoint.EVICTABLE

    @property
    def queue(self) -> int:
        """Row of the preemptor's queue."""
        return int(self.snapshot.podgroups.queue[self.attempt.podgroups[0]])

    @property
    def queues(self) -> list[int]:
        """The queues of all podgroups that start together, that of the preemptor first."""
        return list(dict.fromkeys(self.snapshot.podgroups.queue[list(self.attempt.podgroups)].tolist()))

    @cached_property
    def need(self) -> Need:
        """What the minimum needs."""
        return need_of(self.snapshot, self.attempt.podgroups, surplus=False)

    @cached_property
    def preemptor(self) -> Preemptor:
        """The podgroups as the plugins were asked about them; task by task the first task stands for all."""
        need = self.need
        if self.by_task and len(need.tasks):
            return Preemptor(self.attempt.podgroups, need.request[need.shape[0]], self.purpose, int(need.tasks[0]))
        return Preemptor(self.attempt.podgroups, need.total, self.purpose)

    @cached_property
    def may_go(self) -> Bools:
        """bool[T]: tasks of others that may be evicted as far as each can be judged alone."""
        if self.reason in (Reason.NEVER, Reason.DELAY):
            return sealed(np.zeros(len(self.snapshot.tasks), np.bool_))
        if not self.by_task:
            return self.host.candidates(self.preemptor)
        snapshot, groups = self.snapshot, self.snapshot.podgroups
        if self.purpose is Purpose.RECLAIM:
            may = (groups.queue != self.queue) & snapshot.queues.reclaimable[groups.queue]
        else:
            may = groups.queue == self.queue
        may = may & groups.alive & ~mask_of(list(self.attempt.podgroups), len(groups))
        return sealed(self.host.task_candidates(self.preemptor, may, self.point))

    @cached_property
    def candidates(self) -> Rows:
        """int64[C]: the same as rows."""
        return np.flatnonzero(self.may_go)

    @property
    def losing(self) -> Rows:
        """int64[K]: the candidates that lose what they hold; none where tasks only move."""
        return NO_ROWS if self.purpose is Purpose.CONSOLIDATE else self.candidates

    @cached_property
    def leaving(self) -> Longs:
        """int64[Q, R]: what those of each queue hold."""
        snapshot, rows = self.snapshot, self.losing
        held = np.zeros_like(snapshot.allocated)
        snapshot.add_requests(rows, held, snapshot.queue_of(rows))
        return sealed(held)

    @cached_property
    def room_after(self) -> Longs:
        """int64[N, R]: what nodes will have once all candidates have gone."""
        snapshot, rows = self.snapshot, self.candidates
        if len(rows) == 0:
            return snapshot.room.future
        room = snapshot.room.future.copy()
        snapshot.add_requests(rows, room, snapshot.tasks.node[rows])
        return room

    @property
    def room_at_most(self) -> Longs:
        """int64[N, R]: what nodes would have without any work but that of the podgroups themselves."""
        snapshot, tasks = self.snapshot, self.snapshot.tasks
        mine, _ = snapshot.tasks_of_all(np.array(self.attempt.podgroups))
        mine = mine[tasks.runs(mine)]
        held = np.zeros_like(snapshot.nodes.allocatable)
        snapshot.add_requests(mine, held, tasks.node[mine])
        return np.asarray(snapshot.nodes.allocatable - held)

    @cached_property
    def domains(self) -> Rows:
        """int64[D]: domains in which the podgroups may lie, beside their tasks that have a node; there may be none."""
        offered = self.host.domains(self.attempt.podgroups, self.purpose)
        return required_domains(self.snapshot, self.attempt.podgroups) if offered is None else offered
