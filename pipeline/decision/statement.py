"""A statement: evictions, nominations and bindings that commit together or not at all.

It is a value, so nothing is undone: a statement that does not commit was never applied (Volcano keeps an undo log).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows, all_true, distinct, frozen, is_among, sealed, without
from pipeline.keeping import cached_property
from pipeline.policy import Purpose
from pipeline.records import replace


@dataclass(frozen=True)
class Statement:
    """What one decision does.

    Attributes
    ----------
    action
        Name of the action that decided.
    purpose
        The law by which its evictions are judged. ALLOCATE evicts nothing.
    preemptor
        Row of the podgroup for which room is made, NONE if there is none (a stale gang is cleared).
    evictions: int64[V]
        Task rows, ascending.
    nominated, nominated_node: int64[K]
        Task rows and the node each is promised, by task row. NONE as node withdraws a nomination. A task that is
        evicted as well moves: it ends where it is and starts again there.
    bound, bound_node: int64[B]
        Task rows that start at once, and where.
    nominated_card, bound_card: int64[K], int64[B]
        Which card of that node, NONE for a task that needs none.
    admitted: int64[A]
        Rows of podgroups that are admitted.
    """

    action: str
    purpose: Purpose
    preemptor: int
    evictions: Rows
    nominated: Rows
    nominated_node: Rows
    nominated_card: Rows
    bound: Rows = field(default_factory=lambda: NO_ROWS)
    bound_node: Rows = field(default_factory=lambda: NO_ROWS)
    bound_card: Rows = field(default_factory=lambda: NO_ROWS)
    admitted: Rows = field(default_factory=lambda: NO_ROWS)

    @property
    def empty(self) -> bool:
        """Whether it does nothing."""
        return not any(map(len, (self.evictions, self.nominated, self.bound, self.admitted)))

    @property
    def moved(self) -> Rows:
        """int64[M]: task rows that are evicted and promised another node."""
        return self.evictions[is_among(self.evictions, self.nominated)]

    @property
    def withdrawn(self) -> Rows:
        """int64[W]: task rows whose nominations it withdraws."""
        return np.asarray(self.nominated[self.nominated_node == NONE])

    @cached_property
    def placed(self) -> Rows:
        """int64[P]: task rows that are promised a node and hold none: those of the preemptor."""
        return sealed(self.nominated[(self.nominated_node != NONE) & ~is_among(self.nominated, self.evictions)])

    @cached_property
    def places(self) -> tuple[Rows, Rows, Rows]:
        """int64[P] each: task rows that are promised a node, then those that start at once; their nodes and cards."""
        some = self.nominated_node >= 0
        if len(self.bound) == 0 and all_true(some):
            return self.nominated, self.nominated_node, self.nominated_card
        return (
            sealed(np.concatenate([self.nominated[some], self.bound])),
            sealed(np.concatenate([self.nominated_node[some], self.bound_node])),
            sealed(np.concatenate([self.nominated_card[some], self.bound_card])),
        )

    def evicting_only(self, victims: Rows) -> "Statement":
        """The statement with ``victims`` (int64[V], some of its own) evicted and the others left alone.

        A task that would have moved stays, and is promised nothing.
        """
        if len(victims) == len(self.evictions):
            return self
        kept = ~is_among(self.nominated, without(self.evictions, victims))
        return replace(
            self,
            evictions=frozen(distinct(victims), np.int64),
            nominated=frozen(self.nominated[kept], np.int64),
            nominated_node=frozen(self.nominated_node[kept], np.int64),
            nominated_card=frozen(self.nominated_card[kept], np.int64),
        )


def statement(
    action: str,
    preemptor: int = NONE,
    *,
    purpose: Purpose = Purpose.ALLOCATE,
    evictions: Rows = NO_ROWS,
    nominated: Rows = NO_ROWS,
    nominated_node: Rows = NO_ROWS,
    nominated_card: Rows | None = None,
    bound: Rows = NO_ROWS,
    bound_node: Rows = NO_ROWS,
    bound_card: Rows | None = None,
    admitted: Rows = NO_ROWS,
) -> Statement:
    """Build a statement in its canonical order: task rows ascend in every column. Without cards no task needs one."""
    nominated_card = _none(len(nominated)) if nominated_card is None else nominated_card
    bound_card = _none(len(bound)) if bound_card is None else bound_card
    return Statement(
        action,
        purpose,
        preemptor,
        _ascending(evictions),
        *_by_task(nominated, nominated_node, nominated_card),
        *_by_task(bound, bound_node, bound_card),
        _ascending(admitted),
    )


def _none(many: int) -> Rows:
    return np.full(many, NONE, np.int64) if many else NO_ROWS


def _ascending(rows: Rows) -> Rows:
    return frozen(distinct(rows) if len(rows) > 1 else rows, np.int64)


def _by_task(tasks: Rows, nodes: Rows, cards: Rows) -> tuple[Rows, Rows, Rows]:
    """The columns with the task rows ascending."""
    if len(tasks) == 0:
        return NO_ROWS, NO_ROWS, NO_ROWS
    if len(tasks) > 1:
        order = tasks.argsort(kind="stable")
        tasks, nodes, cards = tasks[order], nodes[order], cards[order]
    return frozen(tasks, np.int64), frozen(nodes, np.int64), frozen(cards, np.int64)


def merged_statement(some: Sequence[Statement]) -> Statement:
    """What several statements of one action do, no two about the same task; it is for the preemptor of the first."""
    first, *others = some
    if not others:
        return first
    names = [one.name for one in fields(first) if isinstance(getattr(first, one.name), np.ndarray)]
    columns = {name: np.concatenate([getattr(made, name) for made in some]) for name in names}
    return statement(first.action, first.preemptor, purpose=first.purpose, **columns)


def withdrawal(promised: Rows) -> Statement:
    """The statement that withdraws the nominations of the tasks ``promised``."""
    return statement("withdraw", nominated=promised, nominated_node=_none(len(promised)))


def taking_back(made: Statement, promised: Rows) -> Statement:
    """The statement that also withdraws those nominations of the tasks ``promised`` that it does not make anew."""
    left = without(promised, np.concatenate([made.nominated, made.bound]))
    return merged_statement([made, statement(made.action, nominated=left, nominated_node=_none(len(left)))])
