"""What a search has decided so far, and what plugins say of the state to which that leads."""

from itertools import pairwise

from pipeline.cluster.arrays import Rows
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host
from pipeline.solvers.tasks.kinds import no_decisions
from pipeline.solvers.tasks.rule import Place


class Present:
    """The decisions of a search, which the search writes, and the state they lead to, worked out when it is asked for.

    Parameters
    ----------
    host
        Of the snapshot before the first decision.
    tasks
        How many decisions there may be.
    """

    def __init__(self, host: Host, tasks: int) -> None:
        self.decisions = no_decisions(host.context.snapshot, tasks)
        self._before, self._host = host, host
        self._state, self._known = WhatIf.of(host.context.snapshot), 0

    @property
    def many(self) -> int:
        """How many decisions there are."""
        return int(self.decisions.many[0])

    @property
    def state(self) -> WhatIf:
        """The state by now."""
        self._bring_up()
        return self._state

    @property
    def host(self) -> Host:
        """What plugins say of it."""
        self._bring_up()
        return self._host

    def _bring_up(self) -> None:
        if self._known < self.many:
            self._state = self._grown(self._state, self._known, self.many)
            self._host = self._before.on(self._state, self._victims(0, self.many))
            self._known = self.many

    def host_after(self, many: int) -> Host:
        """What plugins said of the state after the first decisions."""
        if many == self.many:
            return self.host
        return self._before.on(self._grown(WhatIf.of(self._before.context.snapshot), 0, many), self._victims(0, many))

    def places(self) -> list[Place]:
        """The decisions as places."""
        made, many = self.decisions, self.many
        victims, released = (
            [rows[start:stop] for start, stop in pairwise(first[: many + 1].tolist())]
            for rows, first in ((made.victims, made.first_victim), (made.released, made.first_released))
        )
        rows = (column[:many].tolist() for column in (made.task, made.node, made.card))
        return [Place(*row) for row in zip(*rows, victims, released, strict=True)] if many else []

    def _victims(self, first: int, last: int) -> Rows:
        start = self.decisions.first_victim
        return self.decisions.victims[start[first] : start[last]].copy()

    def _grown(self, state: WhatIf, first: int, last: int) -> WhatIf:
        """The state with some more decisions carried out."""
        made, some = self.decisions, slice(first, last)
        victims = self._victims(first, last)
        state = state.evicting(victims) if len(victims) else state
        released = made.released[made.first_released[first] : made.first_released[last]].copy()
        if len(released):
            state = state.withdrawing(released)
        return state.nominating(made.task[some].copy(), made.node[some].copy(), made.card[some].copy())
