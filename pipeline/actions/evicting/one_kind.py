"""Room for gangs of one kind is sought at once.

If they were served one after the other, each would break what is cheapest for it alone. So victims for all of them are
sought first, as if they were one gang, and each then takes what it needs of those.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice, takewhile

from pipeline.actions.backoff import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation
from pipeline.placement.kinds import PodgroupKind, kinds_in_turn

#: For at most this many gangs; and for this many tasks of podgroups that need every task.
LIMIT, TASKS = 64, 512


def of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are single gangs of one kind.

    They have the same queue, priority and rights, no topology or subgroups of their own, and ask for the same.
    """
    return _leading(snapshot, islice(some, LIMIT), lambda _, kind: kind.minimum > 1)  # a single task breaks little


def rigid_of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one kind which need all of their tasks; all of those wait."""

    def is_rigid(row: int, kind: PodgroupKind) -> bool:
        return kind.minimum == kind.waiting == len(snapshot.tasks_of(row))

    found = _leading(snapshot, islice(some, TASKS), is_rigid)
    return found[: max(1, TASKS // len(snapshot.tasks_of(found[0][0])))] if found else []


def of_another(why: Explanation, snapshot: Snapshot, podgroup: int) -> Explanation:
    """Why there is no room for a podgroup, given why there is none for another one of its kind."""
    task_of = dict(zip(snapshot.pending(why.preemptor).tolist(), snapshot.pending(podgroup).tolist(), strict=True))
    obstacles = tuple(
        replace(
            one,
            podgroup=podgroup if one.podgroup == why.preemptor else one.podgroup,
            task=task_of.get(one.task, one.task),
        )
        for one in why.obstacles
    )
    return replace(why, preemptor=podgroup, obstacles=obstacles)


def _leading(
    snapshot: Snapshot, some: Iterable[GangGroup], counts: Callable[[int, PodgroupKind], bool]
) -> list[GangGroup]:
    """The gang groups of the kind of the first one, up to one of another kind or one that does not count.

    None if the first is of no kind, asks for a domain of its own, or does not count (podgroup row, kind).
    """
    kinds = kinds_in_turn(snapshot, some)
    first, kind = next(kinds, ((), None))
    if kind is None or kind.has_levels or not counts(first[0], kind):
        return []
    alike = takewhile(lambda other: other[1] == kind and counts(other[0][0], kind), kinds)
    return [first, *(one for one, _ in alike)]


def as_one(some: Iterable[GangGroup], attempt: Attempt) -> Attempt:
    """The attempt of the first of them for all of them."""
    return replace(attempt, podgroups=tuple(row for one in some for row in one))
