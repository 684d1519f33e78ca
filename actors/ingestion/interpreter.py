"""Messages become changes of the state: names are resolved here, and what names nothing known is refused.

Messages of one sort in a row are gathered and folded together; another sort folds what was gathered first, so that
everything takes effect in the order in which it came, or as if it had (see ``gathering``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgpack

from actors.cluster_file.documents import ClusterDocument, PriorityClassDocument
from actors.cluster_file.reader import ClusterFileRefused, read_leniently
from actors.columns.compile import compile_cluster
from actors.ingestion.batching import Gathering
from actors.ingestion.decision_events import claim, decided_of, noted, still_overdue, still_standing, withdrawn_of
from actors.ingestion.node_events import (
    lay_budgets,
    lay_nodes,
    lay_queues,
    remove_nodes,
    remove_podgroups,
    remove_queues,
)
from actors.ingestion.podgroup_events import grow
from actors.ingestion.register import NONE, Register
from actors.ingestion.relaying import listed, registered
from actors.ingestion.state import LiveState, TaskRow, task_news, time_of
from actors.ingestion.upserts import plain
from actors.protocol.bodies import (
    VERSION,
    DomainReleased,
    DomainReserved,
    FleetListed,
    PlanCommitted,
    PlanWithdrawn,
    TaskEnded,
    TaskStarted,
    TaskTerminating,
)
from actors.protocol.envelopes import Message
from actors.protocol.full_list import Listing
from pipeline.cluster import checkpoint
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import FAILED, RUNNING, SUCCEEDED, TERMINATING
from pipeline.cluster.updates.events import EVICTED, REPLACED
from pipeline.cluster.updates.fold import fold
from pipeline.errors import StateRefused

#: Of a whole checkpoint: the snapshot's columns, then the register.
SCHEMA = f"{checkpoint.SCHEMA}+register-2"
_OUTCOMES = {"Succeeded": SUCCEEDED, "Failed": FAILED, "Evicted": EVICTED}
#: A list that takes longer than so many messages is given up: what is kept to be folded again must stay bounded.
_PATIENCE = 500_000
_SORTS = {
    "task_started": "gathered", "task_terminating": "gathered", "task_ended": "gathered",
    "podgroup_upserted": "gathered", "task_upserted": "gathered", "podgroup_removed": "gathered",
    "node_upserted": "nodes", "topology_changed": "nodes", "node_removed": "nodes leaving",
    "queue_upserted": "queues", "queue_removed": "queues leaving", "budget_upserted": "budgets",
    "budget_removed": "budgets", "priority_class_upserted": "classes", "fleet_listed": "list",
    "plan_committed": "decisions", "plan_withdrawn": "decisions",
    "domain_reserved": "decisions", "domain_released": "decisions",
}  # fmt: skip
_FOLDS = {
    "nodes": lay_nodes, "nodes leaving": remove_nodes, "queues": lay_queues, "queues leaving": remove_queues,
    "budgets": lay_budgets,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _OpenList:
    """A list of which parts are still to come: the state when it began, and what was said since."""

    list_id: str
    snapshot: Snapshot
    names: Register
    since: list[Message]


class Interpreter:
    """The way in which messages change the state."""

    def __init__(self, state: LiveState | None = None) -> None:
        self._state = state if state is not None else _nothing()
        self._listing = Listing()
        self._open: _OpenList | None = None
        self._sort = ""
        self._held: list[Message] = []
        self._gathering = Gathering()

    @property
    def snapshot(self) -> Snapshot:
        """The state, less what is gathered and not folded yet (see ``settle``)."""
        return self._state.snapshot

    @property
    def names(self) -> Register:
        """What its rows are called."""
        return self._state.names

    def refused(self) -> list[tuple[Message, str]]:
        """Messages that could not be meant since this was last asked, with the reason."""
        said, self._state.refused = self._state.refused, []
        return said

    # -- checkpoints -------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """Everything, as bytes; not while a list is being told."""
        self.names.plans = still_standing(self.snapshot, self.names)
        columns, names = checkpoint.encode(self.snapshot), self.names.pack()
        return b"".join([columns, names, len(columns).to_bytes(8, "little")])

    @classmethod
    def decode(cls, data: bytes) -> Interpreter:
        """What was encoded; the columns are views of ``data``.

        Raises
        ------
        StateRefused
            For anything else.
        """
        view = memoryview(data)
        at = int.from_bytes(view[-8:], "little")
        try:
            return cls(LiveState(checkpoint.decode(view[:at]), Register.unpack(view[at:-8])))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as refusal:
            raise StateRefused(f"checkpoint: expected what was encoded, found something else: {refusal!r}") from refusal

    @property
    def listing(self) -> bool:
        """Whether a list is being told."""
        return self._open is not None

    # -- taking messages ---------------------------------------------------------------------------------------

    def take(self, message: Message) -> None:
        """Take a message; it may be folded later, with others of its sort."""
        sort = _SORTS.get(message.kind)
        if sort is None:
            return
        if sort != self._sort:
            self.settle()
            self._sort = sort
        if sort == "list":
            self._take_part(message)
            return
        if self._open is not None:
            self._open.since.append(message)
            if len(self._open.since) > _PATIENCE:
                self._open, self._listing = None, Listing()
        if sort == "gathered":
            if not self._gathering.take(message, self._state):
                self.settle()
                self._gathering.take(message, self._state)
        elif sort == "decisions":
            self._take_decision(message)
        elif sort == "classes":
            self._take_class(message)
        else:
            self._held.append(message)

    def settle(self) -> None:
        """Fold what was gathered."""
        held, self._held = self._held, []
        if held:
            _FOLDS[self._sort](self._state, held)
        if self._sort == "gathered":
            stages = self._gathering.emptied()
            if described := stages["growth"]:
                grow(self._state, described)
            if tasks := [row for message in stages["tasks"] if (row := self._task_row(message)) is not None]:
                self._state.fold(tasks=task_news(tasks))
            if leaving := stages["podgroups leaving"]:
                remove_podgroups(self._state, leaving)

    def _task_row(self, message: Message) -> TaskRow | None:
        """What a message says of a task, in rows; None where it names what is not there."""
        body, state = message.body, self._state
        assert isinstance(body, (TaskStarted, TaskTerminating, TaskEnded))
        row = state.names.row("tasks", body.task)
        if row == NONE:
            state.refuse(message, f"body.task: expected the name of a task that is known, found {body.task!r}")
            return None
        node, card, at = NONE, NONE, time_of(message)
        if isinstance(body, TaskStarted):
            status, node = RUNNING, state.node(body.node)
            if node == NONE:
                state.refuse(message, f"body.node: expected the name of a node that is there, found {body.node!r}")
                return None
            card, asks = state.snapshot.card_row(node, body.card), self._asks_card(row)
            if card == NONE if asks else body.card is not None:
                known = ", ".join(state.snapshot.card_names(node)) or "it has none"
                expected = f"the name of a card of {body.node} ({known})" if asks else "none without card_request"
                state.refuse(message, f"body.card: expected {expected}, found {body.card!r}")
                return None
            at = body.at if body.at is not None else at
        elif isinstance(body, TaskTerminating):
            status = TERMINATING
        else:
            status = REPLACED if body.replaced else _OUTCOMES[body.outcome]
        return row, status, node, card, body.incarnation, message.revision, at

    def _asks_card(self, row: int) -> bool:
        return bool(self.snapshot.shapes.on_card[self.snapshot.tasks.shape[row]])

    def _take_class(self, message: Message) -> None:
        """A priority class matters to podgroups described after it."""
        body = message.body
        assert isinstance(body, PriorityClassDocument)
        if self._state.is_news(message, "priority_classes", body.name):
            self.names.keep("priority_classes", body.name, plain(body))

    def _take_decision(self, message: Message) -> None:
        body, at, seq = message.body, time_of(message), message.revision
        if seq <= self.snapshot.decided:
            return
        if isinstance(body, PlanCommitted):
            replaced = self.names.plans.pop(body.replaces, None) if body.replaces is not None else None
            self._state.fold(decided=decided_of(self.names, self.snapshot, body, replaced, seq, at))
            noted(self.names, self.snapshot, body, message.entry)
        elif isinstance(body, PlanWithdrawn):
            plan = self.names.plans.pop(body.plan_id, None)
            self._state.fold(decided=withdrawn_of(self.names, plan, seq, at))
        elif isinstance(body, DomainReserved | DomainReleased):
            claim(self.names, body, message.entry)
            self._state.fold(decided=withdrawn_of(self.names, None, seq, at))
        if isinstance(body, PlanCommitted | PlanWithdrawn):
            late = {one.task: (one.incarnation, one.avoided_until) for one in body.overdue}
            self.names.overdue = still_overdue(self.snapshot, self.names, at) | late

    # -- full lists --------------------------------------------------------------------------------------------

    def _take_part(self, message: Message) -> None:
        part = message.body
        assert isinstance(part, FleetListed)
        if message.revision <= self.names.revisions.get("fleet", NONE):
            return
        if self._open is None or self._open.list_id != part.list_id:
            self._open = _OpenList(part.list_id, self.snapshot, self.names.copied(), [])
        whole = self._listing.add(part)
        if whole is None:
            return
        opened, self._open = self._open, None
        try:
            cluster = _in_order(read_leniently({"version": 1, **whole}))
        except ClusterFileRefused as refusal:
            self._state.refuse(message, f"body.cluster: {refusal}")
            return
        self._begin_from(opened, cluster, message.revision)
        # What was said while the list was told is newer than the list.
        for one in opened.since:
            self.take(one)

    def _begin_from(self, opened: _OpenList, cluster: ClusterDocument, revision: int) -> None:
        news, names = listed(opened.snapshot, opened.names, cluster)
        numbered = replace(opened.snapshot, revision=self.snapshot.revision, epoch=self.snapshot.epoch)
        names.sequence = self.names.sequence
        names.revisions["fleet"] = revision
        self._state = LiveState(fold(numbered, news), names, self._state.refused)


def _nothing() -> LiveState:
    """The state before anything was heard: no nodes, no queues, no podgroups."""
    cluster = read_leniently({"version": 1})
    snapshot, called = compile_cluster(cluster)
    names = registered(cluster, called, Register())
    names.listed = False
    return LiveState(snapshot, names)


def _in_order(cluster: ClusterDocument) -> ClusterDocument:
    """Budgets by name, as they stand whenever one of them is described again."""
    budgets = sorted(cluster.disruption_budgets, key=lambda one: f"{one.namespace}/{one.name}")
    return cluster.model_copy(update={"disruption_budgets": tuple(budgets)})


def as_sent(message: Message) -> bytes:
    """The envelope of a message once more, for a dead letter."""
    envelope = {
        "version": VERSION, "uid": message.uid, "kind": message.kind, "revision": message.revision,
        "body": message.body.model_dump(exclude_unset=True, exclude_none=True),
    }  # fmt: skip
    packed: bytes = msgpack.packb(envelope, default=str)
    return packed
