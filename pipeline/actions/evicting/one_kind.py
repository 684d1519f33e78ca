"""Room for gangs of one kind is sought at once.

If they were served one after the other, each would break what is cheapest for it alone. So victims for all of them are
sought first, as if they were one gang, and each then takes what it needs of those.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, takewhile

from pipeline.actions.backoff import GangGroup
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.explanation import Explanation
from pipeline.placement.kinds import Kind, has_levels, kind_of

#: For at most this many gangs; and for this many tasks of podgroups that need every task.
LIMIT, TASKS = 64, 512


def of_one_kind(snapshot: Snapshot, some: Iterable[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are single gangs of one kind.

    They have the same queue, priority and rights, no topology or subgroups of their own, and ask for the same.
    """
    return _leading((one, _kind(snapshot, one)) for one in islice(some, LIMIT))


def rigid_of_one_kind(snapshot: Snapshot, some: Iterator[GangGroup]) -> list[GangGroup]:
    """The leading gang groups that are podgroups of one kind which need all of their tasks; all of those wait."""
    first = next(some, None)
    if first is None or _rigid_kind(snapshot, first) is None:
        return []
    most = max(1, TASKS // len(snapshot.tasks_of(first[0])))
    return _leading((one, _rigid_kind(snapshot, one)) for one in islice(chain([first], some), most))


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


def _leading(kinds: Iterator[tuple[GangGroup, Kind | None]]) -> list[GangGroup]:
    """The gang groups of the kind of the first one, up to one of another kind; none if the first has no kind."""
    first = next(kinds, None)
    if first is None or first[1] is None:
        return []
    return [first[0], *(one for one, _ in takewhile(lambda other: other[1] == first[1], kinds))]


def as_one(some: Iterable[GangGroup], attempt: Attempt) -> Attempt:
    """The attempt of the first of them for all of them."""
    return replace(attempt, podgroups=tuple(row for one in some for row in one))


def _kind(snapshot: Snapshot, some: GangGroup) -> Kind | None:
    """The kind of a simple gang; None for others."""
    lone = snapshot.podgroups.min_available[some[0]] < 2  # noqa: PLR2004 - a single task breaks little
    return None if lone or has_levels(snapshot, some[0]) else kind_of(snapshot, some)


def _rigid_kind(snapshot: Snapshot, some: GangGroup) -> Kind | None:
    """The kind of a podgroup that needs all of its tasks, which wait; None for others."""
    every, row = len(snapshot.tasks_of(some[0])), some[0]
    rigid = every == snapshot.podgroups.min_available[row] == snapshot.counts.pending[row]
    kind = kind_of(snapshot, some) if rigid else None
    return None if kind is None or has_levels(snapshot, row) else kind
