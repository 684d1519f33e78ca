"""How far a cycle has come: a value that each action takes and returns."""

from dataclasses import dataclass, replace

import numpy as np

from pipeline.cluster.arrays import Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.decided import carried_out
from pipeline.decision.explanation import Explanation
from pipeline.decision.overlay import released
from pipeline.decision.statement import Statement
from pipeline.plugins.extension_points import NOBODY, Context
from pipeline.plugins.host import Host
from pipeline.policy import Policy


@dataclass(frozen=True)
class Progress:
    """The snapshot with everything decided so far, and what that is.

    Attributes
    ----------
    snapshot
        With ``statements`` applied.
    statements, explanations
        In the order in which they were decided.
    """

    snapshot: Snapshot
    policy: Policy
    now: float
    statements: tuple[Statement, ...] = ()
    explanations: tuple[Explanation, ...] = ()

    def host(self) -> Host:
        """What the plugins say of the snapshot as it is by now."""
        bound = [made.bound for made in self.statements if len(made.bound)]
        starting = np.concatenate(bound) if bound else NOBODY
        return Host(Context(self.snapshot, self.policy, self.now, starting))

    def without_promises(self, rows: Rows) -> Host:
        """What the plugins would say if the tasks ``rows`` were promised nothing."""
        return Host(replace(self.host().context, snapshot=carried_out(released(rows), self.snapshot, self.now)))

    def decided(self, made: Statement, why: Explanation | None = None) -> "Progress":
        """Progress with one more statement carried out.

        The snapshot keeps its revision: plans name the revision of the news that they were made on.
        """
        after = carried_out(made, self.snapshot, self.now)
        return replace(
            self,
            snapshot=replace(after, revision=self.snapshot.revision),
            statements=(*self.statements, made),
            explanations=self.explanations if why is None else (*self.explanations, why),
        )

    def explained(self, why: Explanation) -> "Progress":
        """Progress with one more reason why nothing was done."""
        return replace(self, explanations=(*self.explanations, why))
