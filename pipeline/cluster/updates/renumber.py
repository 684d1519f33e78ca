"""Changes that begin a new epoch: nodes or queues numbered anew, and a full list. They are slower, and rare."""

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Ids
from pipeline.cluster.counted.recent_evictions import in_queues
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING, TERMINATING, Tasks
from pipeline.cluster.updates.copy_on_write import WritableTable
from pipeline.cluster.updates.events import Listed, NodesRelaid, QueuesRelaid
from pipeline.cluster.updates.foreign_keys import translated
from pipeline.cluster.updates.gang_history import history_of_list
from pipeline.cluster.updates.widen import widened
from pipeline.errors import StateRefused
from pipeline.records import replace


def with_nodes(snapshot: Snapshot, relaid: NodesRelaid) -> Snapshot:
    """The snapshot on nodes numbered anew; nominations on nodes that are gone end."""
    snapshot = widened(snapshot, relaid.vocabulary.resources)
    tasks, withdrawn = _on_nodes(snapshot.tasks, relaid)
    groups, parts = WritableTable(snapshot.podgroups), WritableTable(snapshot.subgroups)
    if not np.array_equal(relaid.level_of, np.arange(len(relaid.level_of))):
        for column in ("required_level", "preferred_level"):
            groups[column] = translated(getattr(snapshot.podgroups, column), relaid.level_of)
            parts[column] = translated(getattr(snapshot.subgroups, column), relaid.level_of)
    result = replace(
        snapshot,
        revision=snapshot.revision + relaid.news,
        epoch=snapshot.epoch + relaid.news,
        vocabulary=relaid.vocabulary,
        nodes=relaid.nodes,
        topology=relaid.topology,
        podgroups=groups.done(),
        subgroups=parts.done(),
        tasks=tasks,
    )
    return result if withdrawn else result.following_nodes(snapshot, relaid.node_of, relaid.card_of)


def _on_nodes(known: Tasks, relaid: NodesRelaid) -> tuple[Tasks, bool]:
    """The tasks on nodes and cards numbered anew, and whether a nomination ended; columns that stay are shared."""
    tasks, promised = WritableTable(known), np.flatnonzero(known.nominated != NONE)
    tasks["node"] = translated(known.node, relaid.node_of)
    if (relaid.node_of == NONE).any() and (_holds(known.status) & (tasks["node"] == NONE)).any():
        raise StateRefused("expected a node for every started task, found one whose node is not in the new numbering")
    nominated = relaid.node_of[known.nominated[promised]]
    if relaid.card_of.shape[1]:
        tasks["card"] = moved_cards(known.node, known.card, relaid.card_of)
        tasks["nominated_card"] = moved_cards(known.nominated, known.nominated_card, relaid.card_of)
        if ((known.card != NONE) & (tasks["card"] == NONE) & _holds(known.status)).any():
            raise StateRefused(
                "expected the card of every started task, found one whose card is not in the new numbering"
            )
        lost = (known.nominated_card != NONE) & (tasks["nominated_card"] == NONE)
        nominated[lost[promised]] = NONE
    if len(promised):
        tasks["nominated"][promised] = nominated
    return tasks.done(), bool((nominated == NONE).any())


def _holds(status: Bytes) -> Bools:
    return np.isin(status, (BOUND, RUNNING, TERMINATING))


def with_queues(snapshot: Snapshot, relaid: QueuesRelaid) -> Snapshot:
    """The snapshot with another table of queues."""
    snapshot = widened(snapshot, relaid.resources)
    groups = WritableTable(snapshot.podgroups)
    # Rows of podgroups that are gone must still point to a queue, it does not matter which.
    groups["queue"] = np.maximum(translated(snapshot.podgroups.queue, relaid.queue_of), 0)
    return replace(
        snapshot,
        revision=snapshot.revision + relaid.news,
        epoch=snapshot.epoch + relaid.news,
        queues=relaid.queues,
        podgroups=groups.done(),
        recent=in_queues(snapshot.recent, relaid.queue_of),
    ).following_queues(snapshot)


def moved_cards(node: Ids, card: Ids, card_of: Ids) -> Ids:
    """int32[K]: where some cards of some nodes are in the numbering of ``card_of``; NONE for a card that is gone."""
    result = np.full(len(node), NONE, np.int32)
    if card_of.shape[1]:
        has = (card != NONE) & (node != NONE)
        result[has] = card_of[node[has], card[has]]
    return result


def relisted(snapshot: Snapshot, listed: Listed) -> Snapshot:
    """The state that begins with a full list.

    The list has neither revisions nor our promises, and may have no incarnations: those are counted on. It may be older
    than our last decisions. In the same life, a task that we told to end stays Terminating, a task that we bound stays
    Bound, and our nomination stays if its task still waits or moves and node and card are there. That of a task that
    moves is for its next life, so it stays in that as well. What was once whole stays so, and what is whole with the
    tasks that it has then was.
    """
    fresh = listed.snapshot
    tasks, groups, nodes = WritableTable(fresh.tasks), WritableTable(fresh.podgroups), WritableTable(fresh.nodes)
    _carry_lives(snapshot.tasks, tasks, listed)
    at = np.flatnonzero(listed.podgroup_of != NONE)
    was = listed.podgroup_of[at]
    groups["revision"][at] = snapshot.podgroups.revision[was]
    said, known = groups["started"][at], snapshot.podgroups
    groups["started"][at] = np.where(np.isnan(said), known.started[was], said)
    groups["stale_since"][at] = np.fmin(groups["stale_since"][at], known.stale_since[was])  # if it is still
    groups["phase"][at] = np.maximum(groups["phase"][at], known.phase[was])
    there = np.flatnonzero(listed.node_of != NONE)
    nodes["revision"][listed.node_of[there]] = snapshot.nodes.revision[there]
    result = replace(
        fresh,
        revision=snapshot.revision + 1,
        epoch=snapshot.epoch + 1,
        decided=snapshot.decided,
        tasks=tasks.done(),
        podgroups=groups.done(),
        nodes=nodes.done(),
        recent=in_queues(snapshot.recent, listed.queue_of),
    )
    return history_of_list(result, listed.at)


def _carry_lives(known: Tasks, tasks: WritableTable[Tasks], listed: Listed) -> None:
    at = np.flatnonzero(listed.task_of != NONE)
    was = listed.task_of[at]
    tasks["revision"][at] = known.revision[was]
    said, status = tasks["incarnation"][at], known.status[was]
    same = said <= known.incarnation[was]
    on = moved_cards(known.node[was], known.card[was], listed.card_of)
    place = np.where((on != NONE) | (known.card[was] == NONE), translated(known.node[was], listed.node_of), NONE)
    # In the same life, a task that waits has not started: we bound it, and may have told it to end before it started.
    unheard = (status == BOUND) | (listed.lives & (status == TERMINATING))
    starting = same & (tasks["status"][at] == PENDING) & unheard & (place != NONE)
    tasks["status"][at[starting]] = status[starting]
    tasks["node"][at[starting]] = place[starting]
    tasks["card"][at[starting]] = on[starting]
    waits = tasks["status"][at] == PENDING
    again = same & waits & (status != PENDING)
    tasks["incarnation"][at] = np.where(same, known.incarnation[was] + again, said)
    ending = same & (status == TERMINATING) & np.isin(tasks["status"][at], (BOUND, RUNNING))
    tasks["status"][at[ending]] = TERMINATING
    promised = translated(known.nominated[was], listed.node_of)
    promised_card = moved_cards(known.nominated[was], known.nominated_card[was], listed.card_of)
    promised[(promised_card == NONE) & (known.nominated_card[was] != NONE)] = NONE
    moving = same & (status == TERMINATING) & np.isin(tasks["status"][at], (PENDING, TERMINATING))
    moved = (status == TERMINATING) & waits & (said == known.incarnation[was] + 1)
    stands = (same & ((waits & ~again) | moving)) | moved
    stands &= (tasks["nominated"][at] == NONE) & (promised != NONE)
    tasks["nominated"][at[stands]], tasks["nominated_card"][at[stands]] = promised[stands], promised_card[stands]
