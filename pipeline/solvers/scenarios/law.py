"""Whether the outcome of a scenario is lawful, and whether a queue may take what it asks for."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, UNLIMITED, Bools, Longs, Rows, sealed, without
from pipeline.cluster.queue_tree import in_common
from pipeline.cluster.resources import fits
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.headroom import LineLimits, line_limits
from pipeline.decision.statement import Statement
from pipeline.keeping import cached_property
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Policy, Purpose
from pipeline.solvers.scenarios.slices.halves import NO_LIMITS, Spare
from pipeline.solvers.scenarios.units import VictimUnits

#: This many tasks are judged at once until one may be lost.
_AT_ONCE = 1024


@dataclass(frozen=True)
class Law:
    """The law for one preemptor."""

    host: Host
    preemptor: Preemptor

    @cached_property
    def parts(self) -> dict[tuple[int, bool, bytes, bytes], Rows]:
        """Task rows that were found to go of podgroups with surplus; see ``returning.needed``, where they are kept."""
        return {}

    @cached_property
    def singles(self) -> dict[tuple[int, bytes], tuple[VictimUnits, Longs]]:
        """Tasks of podgroups with surplus, and orders of their return, int64[O, U]; see ``returning.needed``."""
        return {}

    @property
    def moves_all(self) -> bool:
        """Whether every victim must get another place."""
        return self.preemptor.purpose is Purpose.CONSOLIDATE

    @property
    def moves_are_free(self) -> bool:
        """Whether a task that is placed again at once does not count as taken."""
        return self.moves_all or moves_are_free(self.host.context.policy, self.preemptor.purpose)

    def allows(self, victims: Rows) -> bool:
        """Whether the plugins accept the victims as a set.

        Then they accept none as well, and every part that keeps the victims of the queues nearest to the preemptor's.
        Other parts may be refused: what goes in a department of its own lets it take more from another one.
        """
        return self.host.validate_set(self.preemptor, victims)

    @cached_property
    def allows_any(self) -> bool:
        """Whether the plugins accept any victims; asked where they have refused some."""
        return self.allows(NO_ROWS)

    def may_lose(self, rows: Rows) -> Bools:
        """bool[V]: which of the tasks ``rows`` (int64[V]) a set of victims can include that the plugins accept.

        Of such a set they accept each task of the queues nearest to the preemptor's by itself, too. Tasks of farther
        ones may be lawful only beside these.
        """
        alone = self.host.validate_each(self.preemptor, list(rows[:, None]))
        near = self.nearness(self.host.context.snapshot.tasks.podgroup[rows].astype(np.int64))
        nearest = near[alone].max(initial=NONE)
        lost: Bools = (alone & (near == nearest)) | (near < nearest)
        return lost

    @cached_property
    def may_be_lost(self) -> Bools:
        """bool[T]: candidates that a set of victims can include that the plugins accept, see ``may_lose``."""
        may: Bools = self.host.candidates(self.preemptor).copy()
        may[may] = self.may_lose(may.nonzero()[0])
        return sealed(may)

    @cached_property
    def loses_none(self) -> bool:
        """Whether every victim must get another place: plugins accept none that loses its own, see ``may_lose``."""
        if self.moves_all:
            return True
        rows = self.host.candidates(self.preemptor).nonzero()[0][:, None]
        some = (list(rows[at : at + _AT_ONCE]) for at in range(0, len(rows), _AT_ONCE))
        return not any(self.host.validate_each(self.preemptor, each).any() for each in some)

    @cached_property
    def refuses_all(self) -> bool:
        """Whether the plugins accept no victims at all, or in reclaim none that lose a task; asked after a refusal."""
        return not self.allows_any or (self.preemptor.purpose is Purpose.RECLAIM and self.loses_none)

    def nearness(self, podgroups: Rows) -> Longs:
        """int64[G]: how many ancestors the queues of podgroups share with the preemptor's, its own queue included."""
        groups, queues = self.host.context.snapshot.podgroups, self.host.context.snapshot.queues
        shared: Longs = in_common(queues.parent, int(groups.queue[self.preemptor.podgroups[0]]))
        return shared[groups.queue[podgroups]]

    def takes(self, victims: Rows) -> bool:
        """Whether the queue may take the request once the victims have gone."""
        request, first = self.preemptor.request, self.preemptor.podgroups[0]
        if self.within_limits:
            return True
        if len(victims) == 0:
            return False
        snapshot = self.host.context.snapshot
        if self._limits.counted:
            lasts = not snapshot.podgroups.preemptible[first]
            lasting = not lasts or bool(fits(request, self.host.lasting_headroom[snapshot.podgroups.queue[first]]))
            return lasting and self._limits.take(request, snapshot, victims)
        after = self.host.on(WhatIf.of(snapshot).evicting(victims), victims)
        return bool(fits(request, after.headroom_of(first)))

    def spare(self, units: VictimUnits, leaving: Rows) -> Spare | None:
        """What units may take back of the queue's limits once ``leaving`` have gone; None if only ``takes`` knows."""
        if self.within_limits:
            return NO_LIMITS
        if not self._limits.counted:
            return None
        request, snapshot, common = self.preemptor.request, self.host.context.snapshot, self._limits.common
        left = self._limits.left_by(snapshot, leaving) - request
        limit, asked = np.nonzero(np.broadcast_to(request > 0, left.shape))
        held = np.add.reduceat(snapshot.request_of(units.rows), units.start[:-1])[:, asked].T
        reach = len(left) - common[snapshot.podgroups.queue[units.podgroup]]
        return Spare(left[limit, asked], np.ascontiguousarray(np.where(reach <= limit[:, None], held, 0)))

    @cached_property
    def _limits(self) -> LineLimits:
        return line_limits(self.host, self.preemptor.podgroups[0])

    @cached_property
    def within_limits(self) -> bool:
        """Whether the queue may take the request as it is."""
        return bool(fits(self.preemptor.request, self.host.headroom_of(self.preemptor.podgroups[0])))

    @cached_property
    def quota(self) -> Longs | None:
        """int64[R]: how much more than they leave victims may take back within the queue's limits, at the most.

        They may take back less where some of them do not count against the tightest limit; ``takes`` knows. None if
        the limits are not counted.
        """
        request = self.preemptor.request
        if self.within_limits:
            return np.full(len(request), UNLIMITED, np.int64)
        if self.preemptor.purpose is not Purpose.PREEMPT and not self._limits.counted:
            return None
        return np.where(request > 0, self.host.headroom_of(self.preemptor.podgroups[0]) - request, UNLIMITED)


def moves_are_free(policy: Policy, purpose: Purpose) -> bool:
    """Whether the policy lets a reclaim move tasks of queues from which it may not take."""
    return purpose is Purpose.RECLAIM and policy.allow_consolidating_reclaim


def taken(policy: Policy, made: Statement) -> Rows:
    """int64[V]: the victims of a statement that count as taken."""
    return without(made.evictions, made.moved) if moves_are_free(policy, made.purpose) else made.evictions
