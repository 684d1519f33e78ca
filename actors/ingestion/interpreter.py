"""Messages become changes of the state: names are resolved here, and unknown names are refused.

Messages are held in a `NewsBatch` as long as their order does not matter, and then folded together. So every message
takes effect in the order in which it came, or as if it had.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgpack

from actors.broker.bus import DECISIONS, EVENTS
from actors.cluster_file.bounds import Size, size_of
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.documents.model import Document
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.ingestion.batching import DESCRIBED, HAPPENED, LEFT, STAGES, NewsBatch
from actors.ingestion.by_kind.decision_events import forget_what_is_over, take_decisions
from actors.ingestion.by_kind.full_lists import OpenList, empty_state, state_of_list
from actors.ingestion.by_kind.node_events import remove_nodes, take_nodes, take_topologies
from actors.ingestion.by_kind.podgroup_events import remove_podgroups, take_descriptions
from actors.ingestion.by_kind.queue_events import remove_queues, take_budgets, take_classes, take_queues
from actors.ingestion.by_kind.task_events import take_tasks
from actors.ingestion.known.in_doubt import DOUBT, InDoubt
from actors.ingestion.known.measured_words import MeasuredWords
from actors.ingestion.known.state import LiveState
from actors.protocol.bodies import DECISION_KINDS, VERSION, FleetListed
from actors.protocol.envelopes import Message, RefusedMessage
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot

log = logging.getLogger(__name__)

_FOLDS: dict[str, Callable[[LiveState, Sequence[Message]], None]] = {
    DESCRIBED: take_descriptions,
    HAPPENED: take_tasks,
    LEFT: remove_podgroups,
    "nodes": take_nodes,
    "topology": take_topologies,
    "nodes leaving": remove_nodes,
    "queues": take_queues,
    "queues leaving": remove_queues,
    "budgets": take_budgets,
    "classes": take_classes,
    "decisions": take_decisions,
}
#: By kind: the key of the document in a body that is none itself.
_INSIDE = {"task_upserted": "task", "topology_changed": "topology"}
_NOTHING = Size()


class Interpreter:
    """The way in which messages change the state.

    Parameters
    ----------
    most
        What the state may hold in all.
    """

    def __init__(self, state: LiveState | None = None, most: StateLimits = STATE_LIMITS) -> None:
        self._state, self._most = state if state is not None else empty_state(), most
        self._open: OpenList | None = None
        self._batch, self._ahead = NewsBatch(), _NOTHING
        self._folded: Size | None = None
        self._in_doubt = InDoubt()
        self._before_list: int | None = None

    @property
    def state(self) -> LiveState:
        """The state, without what is held and not folded yet (see ``flush``)."""
        return self._state

    @property
    def snapshot(self) -> Snapshot:
        """Its snapshot."""
        return self._state.snapshot

    @property
    def listing(self) -> bool:
        """Whether a list is being sent."""
        return self._open is not None

    def refused(self, gaps: bool = False) -> list[RefusedMessage]:
        """Messages refused since this was last asked.

        Parameters
        ----------
        gaps
            Whether entries before them are missing. Then those before a list wait for one (see ``made_up``).
        """
        said, self._state.refused = self._state.refused, []
        before, self._before_list = self._before_list, None
        if gaps and said:
            said = [*self._in_doubt.hold(said[:before]), *(said[before:] if before is not None else ())]
            log.warning("%d refused messages wait for a list: entries before them are missing", len(self._in_doubt))
        return [_refusal(message, reason) for message, reason in said]

    def made_up(self) -> list[RefusedMessage]:
        """Of the messages that waited, those that name what the list does not know either.

        They are tried on a copy: what they say is older than the list.
        """
        held = self._in_doubt.let_go()
        if not held:
            return []
        trial = Interpreter(replace(self._state.copied(), refused=[], measured=MeasuredWords()), self._most)
        for message, _ in held:
            trial.take(message)
        trial.flush()
        wrong = trial.state.refused
        log.info("of %d messages that waited for a list, %d name what it does not know", len(held), len(wrong))
        return [_refusal(message, reason + DOUBT) for message, reason in wrong]

    # -- checkpoints -------------------------------------------------------------------------------------------

    def encode(self) -> list[bytes | memoryview]:
        """The whole state, see `LiveState.encode`; not while a list is being sent."""
        forget_what_is_over(self._state)
        return self._state.encode()

    @classmethod
    def decode(cls, data: bytes, most: StateLimits = STATE_LIMITS) -> Interpreter:
        """See `LiveState.decode`."""
        return cls(LiveState.decode(data), most)

    # -- taking messages ---------------------------------------------------------------------------------------

    def take(self, message: Message, *, again: bool = False) -> None:
        """Take a message; it may be folded later, with others. ``again``: it is known to be sent again."""
        if message.kind not in STAGES:
            return
        reason = None if again else self._counted_anew(message)
        if reason is not None:
            self._state.refuse(message, reason)
            return
        excess = self._beyond_bounds(message)
        if excess is not None:
            self._state.refuse(message, excess)
            return
        if not self._batch.take(message, self._state):
            self.flush()
            self._batch.take(message, self._state)
        if self._open is not None and message.kind != "fleet_listed":
            self._open.since.append(message)
            if self._open.is_too_long:
                self._open = None

    def _counted_anew(self, message: Message) -> str | None:
        """Why a message is refused that would be old without end, or None.

        A fleet that counts its entries anew may count its revisions anew as well. A list whose revision is the same as
        that of the newest one is another list then.
        """
        newest = NONE
        for _ in range(2):  # what is held may end this, such as a list
            newest = self._state.newest(message) if self._state.anew else NONE
            if message.revision >= newest + (newest != NONE and message.kind == "fleet_listed"):
                return None
            self.flush()
        return f"revision: expected more than {newest}, its newest, found {message.revision}"

    def _beyond_bounds(self, message: Message) -> str | None:
        """Why the state has no room for what a message adds, or None.

        What is held counts as all new until that seems to be too much; then it is folded and counted, so that it does
        not matter how messages were cut into batches.
        """
        inside = _INSIDE.get(message.kind)
        described = message.body if inside is None else getattr(message.body, inside)
        if not isinstance(described, Document):
            return None
        added = size_of(described)
        self._ahead = self._ahead.and_more(added)
        if self._size.and_more(self._ahead).beyond(self._most) is None:
            return None
        self.flush()
        self._ahead = self._state.less_known(added, message)
        excess = self._size.and_more(self._ahead).beyond(self._most)
        if excess is None:
            return None
        self._ahead = _NOTHING
        return f"body: {excess[0]}, found {excess[1]}"

    @property
    def _size(self) -> Size:
        """What the state holds, counted once for each time that it is folded."""
        if self._folded is None:
            self._folded = self._state.size
        return self._folded

    def flush(self) -> None:
        """Fold what is held."""
        self._ahead, self._folded = _NOTHING, None
        for stage, messages in self._batch.emptied():
            if stage == "list":
                for message in messages:
                    self._take_part(message)
            else:
                _FOLDS[stage](self._state, messages)

    def _take_part(self, message: Message) -> None:
        part = message.body
        assert isinstance(part, FleetListed)
        if message.revision <= self._state.documents.revisions.get("fleet", NONE):
            return
        if self._open is None or self._open.list_id != part.list_id:
            self._open = OpenList(part.list_id, self._state.copied())
        try:
            state = state_of_list(self._open, self._state, part, message, self._most)
        except ClusterFileRefused as refusal:
            self._open = None
            self._state.refuse(message, f"body.cluster: {refusal}")
            return
        if state is None:
            return
        since, self._open, self._state = self._open.since, None, state
        self._before_list = len(state.refused)
        for one in since:
            self.take(one, again=True)
        self.flush()


def _refusal(message: Message, reason: str) -> RefusedMessage:
    """A message that was refused, with its envelope."""
    envelope = {
        "version": VERSION, "uid": message.uid, "kind": message.kind, "revision": message.revision,
        "body": message.body.model_dump(exclude_unset=True, exclude_none=True),
    }  # fmt: skip
    stream = DECISIONS if message.kind in DECISION_KINDS else EVENTS
    return RefusedMessage(reason, msgpack.packb(envelope, default=str), stream, message.entry, message.index)
