"""The solver ``bundles``: whole gangs as victims and preemptors ("Gang-Aware Preemption and Reclaim")."""

from pipeline.decision.law import lawful, still_lawful
from pipeline.policy import ExtensionPoint, Policy, Purpose
from pipeline.solvers.bundles.search import divides, propose, survey

__all__ = ["divides", "lawful", "passes", "propose", "still_lawful", "survey", "victim_point", "widest_dealt"]

#: Wider gangs are searched for one by one: each of them is a search of its own size.
_WIDEST = 512


def passes(purpose: Purpose) -> tuple[bool, ...]:  # noqa: ARG001 - the same for all
    """One pass: a gang never takes from itself."""
    return (False,)


def victim_point(purpose: Purpose) -> ExtensionPoint:  # noqa: ARG001 - the same for all
    """Plugins are asked about gangs."""
    return ExtensionPoint.EVICTABLE


def widest_dealt(policy: Policy) -> int:
    """Podgroups alike are served by one search, unless the policy keeps the order of bundles."""
    return _WIDEST if policy.cheapest_set else 0
