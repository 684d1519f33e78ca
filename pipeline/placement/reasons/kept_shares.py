"""What other queues keep: tasks that may not go, because their queue would hold less than it deserves."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, Bools, Longs, Rows
from pipeline.cluster.orders import unique_counts
from pipeline.cluster.queue_tree import chain
from pipeline.cluster.resources import PODS
from pipeline.decision.obstacle import Cause, Obstacle
from pipeline.placement.reasons.question import Question


def kept_shares(asked: Question, plugin: str, refused: Rows, *, branches: bool) -> Iterator[Obstacle]:
    """Queues that would hold less than they deserve without tasks that they may not lose, and what they deserve.

    A task counts for the first queue of its line that would fall short by the loss of this task alone, or else by the
    loss of all of them, or of all candidates.

    Parameters
    ----------
    refused: int64[V]
        The tasks.
    branches
        Whether queues are judged where their branches part from that of the preemptor, and not each by itself.
    """
    snapshot = asked.snapshot
    parent, mine = snapshot.queues.parent, chain(snapshot.queues.parent, asked.queue)
    of_task = snapshot.queue_of(refused).astype(np.int64)
    kinds, count = unique_counts(of_task * len(snapshot.shapes) + snapshot.tasks.shape[refused])
    of_kind, held = kinds // len(snapshot.shapes), snapshot.shapes.request[kinds % len(snapshot.shapes)]
    kept: Counter[tuple[int, int]] = Counter()
    for queue in np.unique(of_kind).tolist():
        line, here = chain(parent, queue), of_kind == queue
        if branches:
            line = [one for one in line if one not in mine][-1:] or line
        for what, many in _falling_short(asked, queue, line, held[here], count[here]):
            kept[what] += many
    yield from (_kept(asked, plugin, queue, row, many) for (queue, row), many in kept.items() if many)


def _falling_short(
    asked: Question, queue: int, line: list[int], lost: Longs, many: Longs
) -> Iterator[tuple[tuple[int, int], int]]:
    """Queues of a line, each with the resource that it would lack, and for how many tasks of ``queue`` it is the first.

    Parameters
    ----------
    lost, many: int64[K, R], int64[K]
        What tasks of each kind hold, and how many there are.
    """
    parts = (lost, *(np.broadcast_to(all_of, lost.shape) for all_of in (many @ lost, asked.leaving[queue])))
    for part, (one, spare) in product(parts, zip(line, _to_spare(asked, line), strict=True)):
        short = (part > spare) & (part > 0) & (many > 0)[:, None]
        if short.any():
            yield (one, _most_asked(asked, short.any(axis=0))), int(many[short.any(axis=1)].sum())
            many = np.where(short.any(axis=1), 0, many)
    yield (queue, NONE), int(many.sum())


def _to_spare(asked: Question, line: list[int]) -> Longs:
    """int64[L, R]: what queues can lose and hold what they deserve; those of the preemptor's line gain its need."""
    snapshot, share = asked.snapshot, asked.host.fair_share()
    gains = np.isin(line, chain(snapshot.queues.parent, asked.queue))[:, None] * asked.preemptor.request
    if share is None:
        return np.full(gains.shape, UNLIMITED, np.int64)
    spare = np.where(share[line] > 0, snapshot.allocated[line] + gains - share[line], UNLIMITED)
    spare[:, PODS] = UNLIMITED
    return np.asarray(spare)


def _most_asked(asked: Question, among: Bools) -> int:
    """Of some resources, the one that the need takes most of in parts of the cluster."""
    parts = np.divide(
        asked.need.total, asked.snapshot.capacity, where=asked.snapshot.capacity > 0, out=np.zeros(len(among))
    )
    return int(np.where(among, parts, -1.0).argmax())


def _kept(asked: Question, plugin: str, queue: int, row: int, count: int) -> Obstacle:
    """Tasks that a queue keeps for what it deserves of a resource; NONE: no amount says it."""
    share = asked.host.fair_share()
    if share is None or row == NONE or share[queue, row] >= UNLIMITED:
        return Obstacle(Cause.QUOTA, plugin, queue, found=count)
    what, kept = asked.snapshot.vocabulary.resources[row], float(share[queue, row])
    cause = Cause.THEIR_SHARE if kept > max(asked.snapshot.queues.deserved[queue, row], 0) else Cause.QUOTA
    return Obstacle(cause, plugin, queue, what=what, wanted=kept, found=count)
