"""Where an action has plans searched for: here, or where the caller says. Decisions do not depend on it."""

from collections.abc import Sequence
from typing import Protocol

from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import NoPlan, Plan
from pipeline.plugins.host import Host
from pipeline.propose import proposed

#: None: the searcher was lost, and the outcome is not known.
Outcome = Plan | NoPlan | None


class Search(Protocol):
    """Searches, and answers what `pipeline.propose` answers, explained in full or not."""

    def ahead(self, attempts: Sequence[Attempt], host: Host) -> Sequence[Outcome]:
        """Outcomes of several attempts on one snapshot at once; empty where searching one after the other is as fast.

        They are speculation: an outcome is used only if nothing was decided before its turn came.
        """
        ...

    def one(self, attempt: Attempt, host: Host) -> Outcome:
        """The outcome of one attempt; ``host`` is of its snapshot."""
        ...


class InPlace:
    """Implements `Search` in this process, one attempt after the other."""

    def ahead(self, attempts: Sequence[Attempt], host: Host) -> Sequence[Outcome]:  # noqa: ARG002
        """Nothing: each is searched when its turn comes."""
        return ()

    def one(self, attempt: Attempt, host: Host) -> Outcome:
        """What `proposed` answers: a cycle that begins anew need not know what stood in the way."""
        return proposed(attempt, host)
