"""What a history must not break beside the rules of every audit: those of a profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from actors.broker.bus import Entry
from actors.protocol.bodies import PlanCommitted
from actors.verification.audit import Audit, AuditReport
from actors.verification.history import in_stream_order
from actors.verification.task_facts import RUNNING


@dataclass(slots=True)
class WholeGangs(Audit):
    """Under `default` a gang that is broken goes with all its tasks: what is left of it is worth nothing."""

    def _committed(self, made: PlanCommitted, at_ms: int) -> None:
        owners = {self._owner(one.task) for one in made.evictions}
        whole = {owner for owner in owners if owner is not None and self._whole(owner)}
        super(WholeGangs, self)._committed(made, at_ms)
        for owner in sorted(whole):
            left = self.facts.tasks_in(self.facts.groups[owner], RUNNING)
            if left and not self._whole(owner) and all(task.preemptible for task in left):
                self._object(made.plan_id, f"breaks {owner} and leaves {len(left)} of its tasks")


def audited_as_default(events: Iterable[Entry], decisions: Iterable[Entry]) -> AuditReport:
    """Audit a history that was decided under `default`."""
    audit = WholeGangs()
    for at_ms, message in in_stream_order(events, decisions):
        audit.hear(message, at_ms)
    return audit.report
