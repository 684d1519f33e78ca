"""The solver ``bundles``: whole gangs as victims and preemptors ("Gang-Aware Preemption and Reclaim")."""

from pipeline.cluster.arrays import Rows
from pipeline.decision.law import why_not_taken
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import ExtensionPoint, Purpose
from pipeline.solvers.bundles.search import divides, propose, survey

__all__ = ["divides", "lawful", "passes", "propose", "still_lawful", "survey", "victim_point"]


def passes(purpose: Purpose) -> tuple[bool, ...]:  # noqa: ARG001 - the same for all
    """One pass: a gang never takes from itself."""
    return (False,)


def victim_point(purpose: Purpose) -> ExtensionPoint:  # noqa: ARG001 - the same for all
    """Plugins are asked about gangs."""
    return ExtensionPoint.EVICTABLE


def still_lawful(host: Host, preemptor: Preemptor, made: Statement, unchanged: bool) -> str | None:  # noqa: ARG001
    """Why the victims may not be taken, or None; asked even if nothing changed."""
    return why_not_taken(host, preemptor, made.evictions, made.evictions)


def lawful(host: Host, preemptor: Preemptor, victims: Rows) -> bool:
    """Whether all plugins agree to the victims (int64[V]) as a set."""
    return host.validate_set(preemptor, victims)
