"""The solver ``bundles``: whole gangs as victims and preemptors ("Gang-Aware Preemption and Reclaim")."""

from pipeline.decision.law import lawful, passes, still_lawful, victim_point
from pipeline.policy import Policy
from pipeline.solvers.bundles.search import divides, propose, survey

__all__ = ["divides", "lawful", "passes", "propose", "still_lawful", "survey", "victim_point", "widest_dealt"]

#: Wider gangs are searched for one by one: each of them is a search of its own size.
_WIDEST = 512


def widest_dealt(policy: Policy) -> int:
    """Podgroups alike are served by one search, unless the policy keeps the order of bundles."""
    return _WIDEST if policy.cheapest_set else 0
