"""Places for the tasks of podgroups that start together, one after the other, each on what those before it left.

What is found of a kind of tasks is carried along and not worked out anew for each task: a decision changes one node.
Tasks of one kind are swept together where nothing has to be asked in between.
"""

import numpy as np

from pipeline.cluster.arrays import Rows
from pipeline.cluster.orders import comparable
from pipeline.cluster.rules.sparing import TaskQuota
from pipeline.decision.attempt import Attempt
from pipeline.keeping import cached_property
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Follows
from pipeline.solvers.tasks.candidates import preemptor_of, victim_order
from pipeline.solvers.tasks.kind_search import KindSearch, Region
from pipeline.solvers.tasks.kinds import Withheld, alike, facts_of, fleet_of, task_kind
from pipeline.solvers.tasks.pinned_regions import is_hard, open_regions
from pipeline.solvers.tasks.present import Present
from pipeline.solvers.tasks.rule import Place, Rule


class TaskSearch:
    """The search on one snapshot.

    Parameters
    ----------
    host
        Of the attempt's snapshot, or of one in which the first tasks have their places.
    tasks: int64[K]
        Those that still need a place, in order.
    missing
        How many of them the minima need: the first ones.
    """

    def __init__(
        self, host: Host, attempt: Attempt, rules: list[Rule], tasks: Rows, missing: int, withheld: Withheld
    ) -> None:
        self._host, self._attempt, self._rules, self._tasks, self._missing = host, attempt, rules, tasks, missing
        self._snapshot, self._withheld, self._stopped = host.context.snapshot, withheld, False
        self._present = Present(host, len(tasks))
        self._facts, self._order = facts_of(self._snapshot), victim_order(host)
        self._limits = host.queue_limits()
        self._fleet = fleet_of(host, self._quota(int(tasks[0]), rules[0]), self._limits)
        self._kinds = dict[tuple[Rule, tuple[int, ...]], KindSearch]()
        self._hard = is_hard(self._snapshot, attempt.podgroups)
        #: The only region that is open to tasks of a subgroup.
        self._pinned = dict[int, Region]()
        #: Keys of podgroups that change with what podgroups hold.
        orders = enumerate(host.job_orders)
        self._changing = [at for at, one in orders if one.JOB_ORDER_FOLLOWS in (Follows.SHARE, Follows.SURPLUS)]

    @cached_property
    def changes_candidates(self) -> bool:
        """Whether a decision may change which other tasks may go or lose their nominations.

        Then the next task is searched for on the state after it, anew.
        """
        rule, groups = self._rules[0], list(self._attempt.podgroups)
        several = len(set(self._snapshot.podgroups.priority[groups].tolist())) > 1
        return (rule.simulated and several) or self._host.shields_anew(rule.point)

    def starving(self) -> bool:
        """Whether the podgroups need more room."""
        return not self._stopped and self._starve(self._present.many)

    def _starve(self, many: int) -> bool:
        """Whether the podgroups still starved after the first ``many`` decisions."""
        return bool(self._present.host_after(many).starving[list(self._attempt.podgroups)].any())

    def places(self) -> list[Place]:
        """What was found."""
        return self._present.places()

    def ahead(self, first: int) -> int:
        """How many tasks, from the one at a position on, are searched for before it is asked whether they starve.

        A promise never makes podgroups starve again, unless their own tasks go for it.
        """
        alone = len(self._rules) > 1 or first >= self._missing or self.changes_candidates
        return 1 if alone else self._missing - first

    def find(self, first: int, last: int) -> bool:
        """Search for the tasks at positions ``first:last``; False once one that a required level binds has no place."""
        before, at = self._present.many, first
        while at < last:
            found, first_of_these = self._present.many, at
            at += self._next(at, last)
            if self._hard and self._present.many - found < at - first_of_these:
                return False
        if last - first > 1:
            self._stop_where_none_starves(before, int(self._tasks[last - 1]))
        return True

    def _next(self, at: int, last: int) -> int:
        """Search for the next tasks that can be decided on together; how many."""
        if self._changing:
            self._reorder()
        key, of_kind = alike(self._snapshot, self._tasks[at:last])
        if self._hard or len(self._rules) > 1:
            return self._place(at, key, of_kind)
        kind = self._kind(int(self._tasks[at]), self._rules[0], key)
        many = 1 if self._changing else kind.swept_together(of_kind)
        kind.place(self._tasks[at : at + many], (0, len(self._snapshot.nodes)))
        return many

    def _place(self, at: int, key: tuple[int, ...], of_kind: int) -> int:
        """The first place for a task, by one rule after the other, each over all regions that are open to it.

        If only one region is, it is the only one for those that follow in the same part of the gang, and those like it
        are searched for with it: of the next ``of_kind`` tasks, which are of one kind (``key``). Returns how many were
        searched for.
        """
        waiting, found = self._tasks[at : max(self._missing, at + 1)], self._present.many
        part = self._snapshot.tasks.subgroup[waiting[:of_kind]]
        for rule in self._rules:
            kind = self._kind(int(waiting[0]), rule, key)
            if int(part[0]) in self._pinned:
                in_part = int(np.argmin(np.append(part == part[0], False)))
                many = 1 if self._changing else kind.swept_together(in_part)
                kind.place(waiting[:many], self._pinned[int(part[0])], all_or_none=self._hard)
                return many
            for region in self._regions(kind, waiting):
                kind.place(waiting[:1], region)
                if self._present.many > found:
                    return 1
        return 1

    def _regions(self, kind: KindSearch, waiting: Rows) -> list[Region]:
        """Regions that are open to the next task. A single one is pinned for those behind it: no place opens another.

        It is not pinned where tasks of the gang may go for others of it: they may be what ties the gang to that region.
        Nor is that of the last task, since less may be open to others once this one has its place.
        """
        found = open_regions(self._attempt, self._present.host, self._present.state, waiting, kind.slots)
        if len(found) == 1 and len(self._rules) == 1 and len(waiting) > 1:
            self._pinned[int(self._snapshot.tasks.subgroup[waiting[0]])] = found[0]
        return found

    def _kind(self, task: int, rule: Rule, key: tuple[int, ...]) -> KindSearch:
        if (rule, key) not in self._kinds:
            quota = self._quota(task, rule)
            columns = task_kind(
                self._host, task, rule, self._order, quota, self._limits, self._withheld, len(self._tasks)
            )
            common = self._host, self._present, self._facts, self._fleet
            self._kinds[rule, key] = KindSearch(*common, columns, task, rule, counted=quota is not None)
        return self._kinds[rule, key]

    def _quota(self, task: int, rule: Rule) -> TaskQuota | None:
        """What plugins count of victims for a task, in columns; None: they have to be asked."""
        return self._host.task_quota(preemptor_of(self._host, task, rule), rule.point)

    def _reorder(self) -> None:
        """Bring the keys of podgroups up to date that change with what podgroups hold."""
        orders = self._present.host.job_orders
        for at in self._changing:
            self._order.jobs[at] = comparable(orders[at].job_order())

    def _stop_where_none_starves(self, before: int, last: int) -> None:
        """Take back decisions that were made although the podgroups no longer starved; see ``ahead``.

        ``before`` is how many decisions there were when it was asked last, ``last`` the last task searched for since.
        """
        many = self._present.many
        asked = many - int(many > before and self._present.decisions.task[many - 1] == last)
        if asked == before or self._starve(asked):
            return
        starves, ends = before, asked
        while ends - starves > 1:
            half = (starves + ends) // 2
            starves, ends = (half, ends) if self._starve(half) else (starves, half)
        self._present.decisions.many[:] = ends
        self._stopped = True
