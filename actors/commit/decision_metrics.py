"""Counts decisions in the metrics."""

from __future__ import annotations

from actors.columns.decision_message import EVICTED_TO_REQUESTED
from actors.observability.metrics import Figures
from actors.protocol.bodies import PlanCommitted


def count_from_zero(figures: Figures) -> None:
    """Have the counters of alerts there from the start: Prometheus sees no rise where there was nothing before."""
    figures.verdicts.add(0, {"verdict": "accepted", "reason": ""})
    for counter in (figures.victims_overdue, figures.reservations_substituted, figures.reservations_expired):
        counter.add(0)


def count_decision(figures: Figures, body: PlanCommitted) -> None:
    """Count what a decision evicts and places."""
    if body.evictions:
        figures.evictions.add(1, {"action": body.action})
        figures.evicted_tasks.add(len(body.evictions), {"action": body.action})
        figures.gangs_broken.add(int(body.cost.get("gangs_broken", 0)))
        figures.lost_work.add(float(body.cost.get("lost_work", 0)))
        figures.evicted_to_requested.only(
            (ratio, {"resource": name.removeprefix(EVICTED_TO_REQUESTED)})
            for name, ratio in body.cost.items()
            if name.startswith(EVICTED_TO_REQUESTED)
        )
    if body.promised or body.bindings:
        figures.gangs_placed.add(1)
