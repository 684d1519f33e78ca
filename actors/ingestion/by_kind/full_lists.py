"""Full lists: everything there is, in parts, from which the state begins anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from actors.broker.bus import id_order
from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_leniently
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from actors.columns.node_joins import same_cards
from actors.documents.state_limits import StateLimits
from actors.ingestion.by_kind.decision_events import take_unknown_parts
from actors.ingestion.by_kind.descriptions import Described
from actors.ingestion.known.kept_documents import KeptDocuments, plain
from actors.ingestion.known.row_names import RowKind, RowNames
from actors.ingestion.known.state import LiveState, time_of
from actors.protocol.bodies import FleetListed
from actors.protocol.envelopes import Message
from actors.protocol.full_list import Listing, fingerprint
from pipeline.cluster.arrays import NONE, Rows, frozen
from pipeline.cluster.updates.events import Listed
from pipeline.cluster.updates.fold import fold

#: A list is given up if more messages come while it is sent, so that the messages kept for it stay bounded.
_LONGEST = 500_000
#: Once they are unpacked, parts take about this many times the bytes that they have in their messages.
_UNPACKED = 8
#: An ingestor that begins with nothing must not repeat a revision or an epoch of an earlier one: a plan that was made
#: or refused on that state would count for this one. So the numbers of a list are no less than its time in the
#: stream, with this many numbers for each millisecond; between two lists they grow more slowly.
_NUMBERS_A_MS = 1_024


@dataclass(slots=True)
class OpenList:
    """A list that is not complete yet.

    Attributes
    ----------
    before
        The state when it began.
    since
        Messages since then, which are newer than the list.
    fingerprints
        Digests of its parts, see ``fingerprint``.
    """

    list_id: str
    before: LiveState
    since: list[Message] = field(default_factory=list)
    parts: Listing = field(default_factory=Listing)
    fingerprints: set[bytes] = field(default_factory=set)

    @property
    def is_too_long(self) -> bool:
        """Whether it must be given up."""
        return len(self.since) > _LONGEST


def empty_state() -> LiveState:
    """The state before the first list: no nodes, no queues, no podgroups."""
    snapshot, names = compile_cluster(read_leniently({"version": 1}))
    return LiveState(snapshot, RowNames.of(names))


def state_of_list(
    opened: OpenList, now: LiveState, part: FleetListed, message: Message, most: StateLimits
) -> LiveState | None:
    """The state of a list, once its last part is there; None before.

    Parameters
    ----------
    opened
        The list, which takes the part.
    now
        The newest state, from which revisions and epochs are counted on.
    message
        The message with the part.
    most
        What the state may hold in all.

    Raises
    ------
    ClusterFileRefused
        If the list is not a valid cluster, or is too large.
    """
    opened.fingerprints.add(fingerprint(part, message.revision))
    whole = opened.parts.add(part)
    if opened.parts.bytes > most.state_bytes // _UNPACKED:
        raise ClusterFileRefused(
            f"expected at most {most.state_bytes // _UNPACKED} bytes in all parts, found {opened.parts.bytes}"
        )
    if whole is None:
        return None
    cluster = _in_order(read_leniently({"version": 1, "now": time_of(message), **whole}, most))
    before = opened.before
    least = id_order(message.entry)[0] * _NUMBERS_A_MS
    numbered = replace(
        before.snapshot, revision=max(now.snapshot.revision, least), epoch=max(now.snapshot.epoch, least)
    )
    news, names = _listed(before, cluster)
    documents = _documents(cluster, before.documents)
    documents.revisions["fleet"] = message.revision
    state = LiveState(
        known=fold(numbered, news),
        names=RowNames.of(names),
        documents=documents,
        decisions=before.decisions,
        listed=True,
        sequence=now.sequence,
        holes=now.holes - before.holes,
        unheard=now.unheard - before.unheard,
        anew=now.anew and not (before.anew and message.revision > before.newest_of_all),
        list_fingerprints=frozenset(opened.fingerprints),
        writer=now.writer,
        lists=now.lists + 1,
        refused=now.refused,
        elsewhere=now.elsewhere,
    )
    take_unknown_parts(state, time_of(message))
    return state


def _in_order(cluster: ClusterDocument) -> ClusterDocument:
    """Budgets by name, as they stand whenever one of them is described again."""
    budgets = sorted(cluster.disruption_budgets, key=lambda one: f"{one.namespace}/{one.name}")
    return cluster.model_copy(update={"disruption_budgets": tuple(budgets)})


def _listed(before: LiveState, cluster: ClusterDocument) -> tuple[Listed, Names]:
    """The list in rows, and which rows of the state before are in it."""
    snapshot = before.snapshot
    part, called = compile_cluster(cluster)
    podgroup_of = _rows(before, "podgroups", called.podgroups)
    podgroup_of[podgroup_of != NONE] = np.where(
        snapshot.podgroups.alive[podgroup_of[podgroup_of != NONE]], podgroup_of[podgroup_of != NONE], NONE
    )
    task_of = _rows(before, "tasks", called.tasks)
    known = np.flatnonzero(task_of != NONE)
    lives_on = podgroup_of[part.tasks.podgroup[known]] == snapshot.tasks.podgroup[task_of[known]]
    task_of[known[~lives_on]] = NONE
    node_of = frozen([called.node_row.get(name, NONE) for name in before.names.nodes], np.int32)
    card_of = same_cards(snapshot, part.vocabulary.card_sets, part.nodes.card_set, node_of)
    lives = any(task.incarnation is not None for podgroup in cluster.podgroups for task in podgroup.tasks)
    queue_of = frozen([called.queue_row.get(name, NONE) for name in before.names.queues], np.int32)
    made = Listed(part, task_of, podgroup_of, node_of, card_of, queue_of, lives, at=float(cluster.now))
    return made, called


def _rows(before: LiveState, section: RowKind, called: Sequence[str]) -> Rows:
    return np.array([before.names.row(section, name) for name in called], np.int64)


def _documents(cluster: ClusterDocument, before: KeptDocuments) -> KeptDocuments:
    """The documents of a list; revisions are kept."""
    made = KeptDocuments()
    made.topology = cluster.topology
    for node in cluster.nodes:
        made.keep("nodes", node.name, plain(node))
    for queue in cluster.queues:
        made.keep("queues", queue.name, plain(queue))
    for known in cluster.priority_classes:
        made.keep("priority_classes", known.name, plain(known))
    for budget in cluster.disruption_budgets:
        made.keep("disruption_budgets", f"{budget.namespace}/{budget.name}", plain(budget))
    for podgroup in cluster.podgroups:
        made.keep("podgroups", podgroup.full_name, Described.anew(podgroup, None, 0, 0.0).to_keep())
    made.revisions = before.revisions
    made.revisions = made.revisions_of_kept(key for key in before.revisions if "/" not in key)
    return made
