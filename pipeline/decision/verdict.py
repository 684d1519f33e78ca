"""Verdicts: the committer's answers to a plan."""

from dataclasses import dataclass

from pipeline.decision.statement import Statement


@dataclass(frozen=True)
class Accepted:
    """The plan holds; ``statement`` is what is committed: the plan's, less victims that are gone or not needed."""

    statement: Statement
    dropped: int = 0


@dataclass(frozen=True)
class Stale:
    """The state has changed: plan again."""

    reason: str


@dataclass(frozen=True)
class Conflict:
    """Another decision was first and holds what this plan needs."""

    reason: str


Verdict = Accepted | Stale | Conflict
