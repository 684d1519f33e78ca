"""Why running tasks stay: each counts for the first cause that keeps it; then causes that concern several at once."""

from collections.abc import Collection, Iterator

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Bools, Rows
from pipeline.cluster.orders import unique_counts
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING, TERMINATING
from pipeline.decision.explanation import Reason
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.reasons.kept_shares import kept_shares
from pipeline.placement.reasons.question import Question
from pipeline.plugins.extension_points import (
    FiltersBundles,
    FiltersTasks,
    PacesEvictions,
    ShieldsTasks,
    ValidatesVictims,
)
from pipeline.plugins.plugin import OfPodgroups, Plugin, Protects
from pipeline.policy import Purpose
from pipeline.records import replace

_SHIELDS = {
    Protects.PRIORITY: Cause.PRIORITY, Protects.CRITICAL: Cause.CRITICAL, Protects.RUNTIME: Cause.YOUNG,
    Protects.COOL_DOWN: Cause.COOLING, Protects.PACE: Cause.WINDOW,
}  # fmt: skip
#: Of plugins that shield tasks, those that come last, in this order: by priority, and then what passes with time.
_LATER = (Cause.PRIORITY, Cause.YOUNG, Cause.COOLING, Cause.WINDOW)
_SHARES = (Protects.SHARES, Protects.BRANCHES)
_QUOTAS = {Protects.MINIMA: Cause.BREAKS, Protects.DOMINANT_SHARES: Cause.POORER}
#: At most this many queues or budgets are named of each plugin.
_NAMED = 4
#: Reasons that say what each candidate alone leaves: only those that may not go at all come into it.
_BY_CANDIDATES = (Reason.BOUND, Reason.NO_CANDIDATES)
#: Where the law may have refused the candidates together.
_BY_LAW = (Reason.ILLEGAL, Reason.VETOED, Reason.UNPLACEABLE, Reason.QUOTA, Reason.NO_MOVES)


def staying(asked: Question, objecting: Collection[str]) -> Iterator[Obstacle]:
    """Running tasks that may not be evicted, by cause.

    Parameters
    ----------
    objecting
        Plugins whose objection is an obstacle already.
    """
    left = _Left(asked)
    times = asked.host.timed_shields(asked.point)
    for cause, name, may in _rules(asked):
        before = left.rows if name in times else NO_ROWS
        kept = left.narrow(may)
        if kept and cause is not Cause.WINDOW:  # their bounds are obstacles already
            until = 0.0
            if name in times:
                over = float(times[name].over_at(asked.preemptor)[np.setdiff1d(before, left.rows)].min())
                until = over if over < float("inf") else 0.0
            yield Obstacle(cause, name, found=kept, until=until)
        if not left:
            break
    quotas = [one for one in _refused(asked) if one.cause is not Cause.TOGETHER or one.plugin not in objecting]
    yield from quotas
    yield from _breaking(asked)
    if asked.reason in _BY_LAW and len(asked.candidates):
        yield from _together(asked, {*objecting, *(one.plugin for one in quotas)})


def pace(asked: Question) -> Iterator[Obstacle]:
    """Bounds on evictions in a window of time that keep running tasks from being evicted now."""
    plugins = asked.host.named(PacesEvictions, asked.point)
    if not plugins or asked.purpose is Purpose.ALLOCATE:
        return
    left = _Left(asked)
    for cause, _, may in _rules(asked):
        if cause is not Cause.WINDOW:
            left.narrow(may)
        if not left:
            break
    for name, plugin in plugins:
        for one in plugin.beyond_pace(left.rows):
            if one.used >= one.most or asked.reason not in _BY_CANDIDATES:
                until = one.leaves if one.leaves < float("inf") else 0.0
                what = f"{one.window_s:g} s"
                yield Obstacle(
                    Cause.WINDOW, name, one.queue, what=what, wanted=one.most, found=one.used, until=until
                )  # fmt: skip


class _Left:
    """Running tasks of others that no rule has kept so far; counted by podgroup, as long as rules are about podgroups.

    Attributes
    ----------
    rows: int64[V]
        The tasks.
    """

    def __init__(self, asked: Question) -> None:
        self._snapshot = asked.snapshot
        self._groups = asked.snapshot.counts.running > 0
        self._groups[list(asked.attempt.podgroups)] = False
        self._by_task: Rows | None = None

    def __bool__(self) -> bool:
        return bool(self._groups.any() if self._by_task is None else len(self._by_task))

    @property
    def rows(self) -> Rows:
        if self._by_task is None:
            tasks = self._snapshot.tasks
            runs = (tasks.status == BOUND) | (tasks.status == RUNNING)
            self._by_task = np.flatnonzero(runs & self._groups[tasks.podgroup])
        return self._by_task

    def narrow(self, may: OfPodgroups | Bools) -> int:
        """Leave only tasks that may go as far as a rule says; returns how many it keeps."""
        if isinstance(may, OfPodgroups) and self._by_task is None:
            kept = self._groups & ~may.may
            self._groups &= may.may
            return int(self._snapshot.counts.running[kept].sum())
        before = self.rows
        go = may.on(self._snapshot.tasks.podgroup[before]) if isinstance(may, OfPodgroups) else may[before]
        self._by_task = before[go]
        return len(before) - len(self._by_task)


def _rules(asked: Question) -> Iterator[tuple[Cause, str, OfPodgroups | Bools]]:
    """For each rule the tasks, or podgroups whose tasks, may go.

    What holds whatever the podgroup's priority is comes before that, and that before what passes with time.
    """
    snapshot, host = asked.snapshot, asked.host
    tasks, groups = snapshot.tasks, snapshot.podgroups
    same = groups.queue == asked.queue
    if asked.purpose is Purpose.RECLAIM:
        yield Cause.SAME_QUEUE, "", OfPodgroups(~same)
        yield Cause.UNRECLAIMABLE, "", OfPodgroups(snapshot.queues.reclaimable[groups.queue])
        if not host.compares_queues(asked.preemptor, asked.point):
            yield Cause.UNENTITLED, "", OfPodgroups(np.zeros(len(groups), np.bool_))
    elif asked.purpose is Purpose.PREEMPT:
        yield Cause.OTHER_QUEUES, "", OfPodgroups(same)
    may = tasks.preemptible & groups.preemptible[tasks.podgroup]
    yield Cause.UNPREEMPTIBLE, "", _of_podgroups(snapshot, may)
    shields = [(_shields(plugin), name, plugin) for name, plugin in host.named(ShieldsTasks, asked.point)]
    shields.sort(key=lambda one: _LATER.index(one[0]) if one[0] in _LATER else -1)
    first = [one for one in shields if one[0] not in _LATER]
    yield from _shielded(asked, first)
    if asked.purpose is Purpose.PREEMPT and not asked.by_task:  # else the plugins say
        highest = groups.priority[list(asked.attempt.podgroups)].min()
        yield Cause.PRIORITY, "", OfPodgroups(groups.priority < highest)
    yield from _shielded(asked, shields[len(first) :])
    if len(host.context.starting):
        may = np.ones(len(tasks), np.bool_)
        may[host.context.starting] = False
        yield Cause.STARTING, "", may


def _shielded(
    asked: Question, shields: list[tuple[Cause, str, ShieldsTasks]]
) -> Iterator[tuple[Cause, str, OfPodgroups | Bools]]:
    """The rules of plugins that shield tasks."""
    for cause, name, plugin in shields:
        opinion = plugin.evictable(asked.preemptor)
        if opinion is not None and opinion is not True:
            if not isinstance(opinion, OfPodgroups):
                every = np.broadcast_to(opinion, len(asked.snapshot.tasks))
                opinion = _of_podgroups(asked.snapshot, every)
            yield cause, name, opinion


def _of_podgroups(snapshot: Snapshot, may: Bools) -> OfPodgroups | Bools:
    """The same said of podgroups, unless one has both tasks that may go and others."""
    if may.all():
        return OfPodgroups(np.ones(len(snapshot.podgroups), np.bool_))
    kept = np.bincount(snapshot.tasks.podgroup[~may], minlength=len(snapshot.podgroups))
    mixed = (kept > 0) & (kept < np.diff(snapshot.members.start))
    return may if mixed.any() else OfPodgroups(kept == 0)


def _shields(plugin: object) -> Cause:
    return _SHIELDS.get(_protected(plugin), Cause.SHIELDED)


def _protected(plugin: object) -> Protects:
    assert isinstance(plugin, Plugin)
    return plugin.PROTECTS


def _refused(asked: Question) -> Iterator[Obstacle]:
    """Candidates that quotas refuse, in the order in which they are asked."""
    rows, host = asked.candidates, asked.host
    if len(rows) == 0:
        return
    if asked.by_task:
        for name, quota in host.named(FiltersTasks, asked.point):
            may = quota.task_quota_filter(asked.preemptor, rows)
            if may is not None:
                yield from _of_quota(asked, name, _protected(quota), rows[~may])
        return
    for name, bundles in host.named(FiltersBundles):
        if bundles.has_quota(asked.preemptor):
            ways = (rows, rows[::-1]) if asked.reason is Reason.VETOED else (rows,)  # the last to go may be too much
            some = (way[~bundles.bundle_quota_filter(asked.preemptor, way)] for way in ways)
            refused = next((one for one in some if len(one)), NO_ROWS)
            yield from _of_quota(asked, name, _protected(bundles), refused)


def _of_quota(asked: Question, plugin: str, protects: Protects, refused: Rows) -> Iterator[Obstacle]:
    if len(refused) == 0:
        return
    if protects is Protects.BUDGETS:
        yield from _budgets(asked, plugin, refused)
    elif protects in _SHARES:
        yield from _of_shares(asked, plugin, protects, refused)
    else:
        yield Obstacle(_QUOTAS.get(protects, Cause.TOGETHER), plugin, found=len(refused))


def _of_shares(asked: Question, plugin: str, protects: Protects, refused: Rows) -> list[Obstacle]:
    """The queues that keep what they deserve, those that keep most tasks first."""
    kept = kept_shares(asked, plugin, refused, branches=protects is Protects.BRANCHES)
    return sorted(kept, key=lambda one: -one.found)[:_NAMED]


def _budgets(asked: Question, plugin: str, refused: Rows) -> Iterator[Obstacle]:
    """The budgets that cover what is refused, how many candidates each covers, and how many of them may go."""
    snapshot = asked.snapshot
    ending = np.flatnonzero(snapshot.tasks.status == TERMINATING)
    used, many = snapshot.how_many_on(ending), snapshot.how_many_on(asked.candidates)
    left = np.maximum(snapshot.budgets.allowed - used, 0)
    for budget in np.flatnonzero(snapshot.how_many_on(refused))[:_NAMED].tolist():
        yield Obstacle(Cause.BUDGET, plugin, budget=budget, wanted=int(many[budget]), found=int(left[budget]))


def _breaking(asked: Question) -> Iterator[Obstacle]:
    """Candidates that could only go with the minimum of their podgroup, where the policy breaks no podgroup."""
    if asked.by_task or asked.attempt.policy.allow_whole_bundle:
        return
    snapshot, rows = asked.snapshot, asked.candidates
    owner, count = unique_counts(snapshot.tasks.podgroup[rows])
    spare = np.maximum(snapshot.counts.ready[owner] - snapshot.podgroups.min_available[owner], 0)
    if (kept := int(np.maximum(count - spare, 0).sum())) > 0:
        yield Obstacle(Cause.BREAKS, found=kept)


def _together(asked: Question, objecting: Collection[str]) -> Iterator[Obstacle]:
    """Plugins that refuse the candidates as a set: by queue for shares, by budget for budgets, else all at once."""
    rows = asked.candidates
    queue = asked.snapshot.queue_of(rows)
    queues, first = np.unique(queue, return_index=True)
    for name, law in asked.host.named(ValidatesVictims):
        if name in objecting or law.validate_set(asked.preemptor, rows):
            continue
        each = zip(queues.tolist(), first.tolist(), strict=True)
        kept = [one for one, at in each if not law.validate_set(asked.preemptor, rows[at : at + 1])]
        if asked.purpose is Purpose.RECLAIM and _protected(law) in _SHARES and kept:
            yield from _of_shares(asked, name, _protected(law), rows[np.isin(queue, kept)])
        elif _protected(law) is Protects.BUDGETS:
            yield from _budgets(asked, name, rows)
        elif _protected(law) is Protects.RUNTIME:
            yield Obstacle(Cause.YOUNG_MINIMA, name, found=len(rows))
        else:
            yield from _as_a_set(asked, name, law) or [Obstacle(Cause.TOGETHER, name, found=len(rows))]


def _as_a_set(asked: Question, plugin: str, law: ValidatesVictims) -> list[Obstacle]:
    """The queues that would hold less than they deserve if all candidates went.

    Where branches are compared, only queues whose candidates are refused by themselves: else the comparison may be why.
    """
    protects, rows = _protected(law), asked.candidates
    if asked.purpose is not Purpose.RECLAIM or protects not in _SHARES:
        return []
    if protects is Protects.BRANCHES:
        queue = asked.snapshot.queue_of(rows)
        each = np.unique(queue).tolist()
        refused = [one for one in each if not law.validate_set(asked.preemptor, rows[queue == one])]
        rows = rows[np.isin(queue, refused)]
    kept = _of_shares(asked, plugin, protects, rows)
    return [replace(one, cause=Cause.TOGETHER) for one in kept if one.what]
