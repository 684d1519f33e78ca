"""Asking the core for plans: attempts on small clusters under a profile."""

from typing import Any

import numpy as np

from actors.configuration.profiles import load_profile
from pipeline.actions.searching import InPlace, Outcome
from pipeline.actions.setup import Setup
from pipeline.cluster.arrays import frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle, cycle
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Policy, Purpose
from pipeline.propose import propose

DEFAULT, VOLCANO = load_profile("default"), load_profile("volcano")


def attempt(
    snapshot: Snapshot,
    podgroup: int | tuple[int, ...],
    purpose: Purpose = Purpose.PREEMPT,
    *,
    policy: Policy = DEFAULT,
    now: float = 0.0,
    domains: list[int] | None = None,
) -> Attempt:
    unit = (podgroup,) if isinstance(podgroup, int) else podgroup
    where = None if domains is None else frozen(domains, np.int64)
    action = "" if policy is DEFAULT else f"gang{purpose.value}"
    return Attempt(snapshot, policy, purpose, unit, where, now, action)


def asked(*said: Any, **more: Any) -> Plan | NoPlan:
    return propose(attempt(*said, **more))


def plan(*said: Any, **more: Any) -> Plan:
    outcome = asked(*said, **more)
    assert isinstance(outcome, Plan), outcome.explanation
    return outcome


def refusal(*said: Any, **more: Any) -> str:
    """Name of the reason why there is no plan."""
    outcome = asked(*said, **more)
    assert isinstance(outcome, NoPlan), outcome.statement
    return outcome.explanation.reason.name


def victims(made: Plan) -> list[int]:
    return made.statement.evictions.tolist()


def places(made: Plan) -> dict[int, int]:
    """Node by task row."""
    return dict(zip(made.statement.nominated.tolist(), made.statement.nominated_node.tolist(), strict=True))


class Noting(InPlace):
    """Searches in place, and notes for whom."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def one(self, attempt: Attempt, host: Host) -> Outcome:
        self.asked.append(attempt.podgroups)
        return super().one(attempt, host)


def served(snapshot: Snapshot, policy: Policy) -> tuple[Cycle, list[tuple[int, ...]]]:
    """A cycle, and the podgroups of each search."""
    search = Noting()
    return cycle(snapshot, policy, 0.0, Setup(search=search)), search.asked


def host_on(snapshot: Snapshot, policy: Policy = DEFAULT, now: float = 0.0) -> Host:
    return Host(Context(snapshot, policy, now))
