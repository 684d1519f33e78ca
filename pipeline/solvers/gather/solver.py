"""The solver ``gather``: gangs placed as close together as the network allows, with or without victims."""

from pipeline.cluster.arrays import NONE
from pipeline.decision import law
from pipeline.decision.law import lawful, passes, victim_point, whole_or_none
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.solvers.gather.allocation import allocate_by_gathering
from pipeline.solvers.gather.multiples import uneven
from pipeline.solvers.gather.preemption import propose

__all__ = [
    "allocate_by_gathering",
    "lawful",
    "passes",
    "propose",
    "still_lawful",
    "uneven",
    "victim_point",
    "whole_or_none",
]


def still_lawful(host: Host, preemptor: Preemptor, made: Statement, unchanged: bool) -> str | None:
    """As of all solvers that take whole gangs; and domains that take multiples get such."""
    stays = made.nominated_node != NONE
    if not unchanged and uneven(host.context.snapshot, made.nominated[stays], made.nominated_node[stays]).any():
        return "a domain would have no multiple of the gang's tasks any more"
    return law.still_lawful(host, preemptor, made, unchanged)
