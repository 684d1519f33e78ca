"""The solvers by name. A profile names one for each action that evicts; no other code asks which one it is.

To add a solver: a file or folder beside these with the functions of ``Solver``, and a line here.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt, Survey
from pipeline.decision.plan import NoPlan, Plan
from pipeline.decision.statement import Statement
from pipeline.errors import PolicyRefused
from pipeline.placement.layout.by_score.gang_allocation import allocate_by_score
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Policy, Purpose
from pipeline.solvers.bundles import solver as bundles
from pipeline.solvers.gather import solver as gather
from pipeline.solvers.scenarios import solver as scenarios
from pipeline.solvers.tasks import solver as tasks


class Solver(Protocol):
    """How a family of policies gets from a need to a statement, and what makes the statement lawful."""

    def passes(self, purpose: Purpose, /) -> tuple[bool, ...]:
        """One entry for each pass over all starving podgroups: ``Attempt.within_podgroup`` in that pass."""

    def victim_point(self, purpose: Purpose, /) -> ExtensionPoint:
        """Where plugins are asked which tasks may go: EVICTABLE of gangs, else of single tasks."""

    def propose(self, attempt: Attempt, host: Host) -> Plan | NoPlan:
        """The best plan for the attempt, or why there is none; ``host`` is of its snapshot, policy and clock."""

    def still_lawful(self, host: Host, preemptor: Preemptor, made: Statement, unchanged: bool, /) -> str | None:
        """Why the statement's victims may not be taken now, or None.

        ``unchanged``: the host is of the revision on which the statement was made.
        """

    def lawful(self, host: Host, preemptor: Preemptor, victims: Rows) -> bool:
        """Whether ``victims`` (int64[V]), some of those of a lawful statement, are lawful without the others."""

    def whole_or_none(self, snapshot: Snapshot, podgroups: Rows, victims: Rows, /) -> Bools:
        """bool[P]: from which of ``podgroups`` no part of the ``victims`` may return, since all go or none."""


class Placer(Protocol):
    """How pending tasks of podgroups that start together are placed without evictions."""

    def __call__(
        self, host: Host, podgroups: tuple[int, ...], action: str, *, surplus_limit: int | None = None
    ) -> Statement | None:
        """Bindings and nominations, or None if the minimum is out of reach; see `gang_allocation`."""


class Dealing(Protocol):
    """Solvers that can find one plan for podgroups that are alike, to be dealt out to them."""

    def widest_dealt(self, policy: Policy, /) -> int:
        """How many tasks such a podgroup may have; 0: they are served one after the other."""


class Divisible(Protocol):
    """Solvers that can search parts of the domains separately; how these are cut does not change a decision."""

    def divides(self, attempt: Attempt) -> bool:
        """Whether this search can be cut."""

    def survey(self, attempt: Attempt, host: Host) -> Survey | None:
        """The survey of a part of the domains, made before any domain is selected: for ``Attempt.survey``.

        None if nothing can be surveyed, since the preemptor may not evict.
        """


SOLVERS: Mapping[str, Solver] = {
    "bundles": bundles,
    "gather": gather,
    "scenarios": scenarios,
    "tasks": tasks,
}
#: Solvers whose victims return one after the other: they need plugins that accept every part of a lawful set.
BY_PARTS = frozenset({"scenarios"})
#: Solvers that find other places for their victims, as consolidation needs: with the others its victims had none.
MOVING = frozenset({"scenarios"})

#: Solvers whose plan for podgroups alike can be dealt out to them; others serve one after the other.
DEALING: Mapping[str, Dealing] = {"bundles": bundles, "scenarios": scenarios}

#: Solvers that also place; with the others, `gang_allocation` places.
PLACERS: Mapping[str, Placer] = {"gather": gather.allocate_by_gathering}

#: What solvers that place ask of promises besides: which tasks may not be where they were promised.
UNKEPT: Mapping[str, Callable[[Snapshot, Rows, Rows], Bools]] = {"gather": gather.uneven}

#: Solvers whose searches can be cut; the others are asked about all domains at once.
DIVISIBLE: Mapping[str, Divisible] = {"bundles": bundles}


def solver_of(policy: Policy, action: str) -> Solver:
    """The solver that the policy names for an action.

    Raises
    ------
    PolicyRefused
        If there is none of that name.
    """
    name = policy.solver(action)
    if name not in SOLVERS:
        raise PolicyRefused(f"policy.solvers.{action}: expected one of {', '.join(SOLVERS)}, found {name!r}")
    return SOLVERS[name]


def placer_of(policy: Policy) -> Placer:
    """How the policy's ``allocate`` places: by the solver that it names for the action, else by score."""
    return PLACERS.get(policy.solver("allocate"), allocate_by_score)


def unkept(policy: Policy, snapshot: Snapshot, rows: Rows, node: Rows) -> Bools:
    """bool[K]: which of the tasks ``rows`` the placer of the policy would leave on no such ``node``; int64[K] each."""
    asks = UNKEPT.get(policy.solver("allocate"))
    return np.zeros(len(rows), bool) if asks is None else asks(snapshot, rows, node)
