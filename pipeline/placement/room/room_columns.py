"""What kernels count on nodes: resources, and anti-affinity on single nodes as one more resource each.

A node is closed to the gang while a task that repels it runs there. So such a task holds all there is of one more
resource, and each task of the gang asks for a little of it; of tasks that repel each other a node has room for one.
Then slots say all about a node, whatever else the gang asks for, and the same kernels serve.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Bools, Ids, Longs, Rows, frozen, sealed
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.snapshot import Snapshot
from pipeline.placement.need import Need

#: What a node has of a resource that tasks hold whole as long as they repel; more than a node takes tasks.
_WHOLE = 1 << 20


class Closing(NamedTuple):
    """Tasks that close nodes to some tasks of the gang; what remains of a node takes any number, or one.

    Attributes
    ----------
    shapes: bool[S]
        To which of the need's shapes.
    tasks: int64[K]
        Rows of the running tasks that do so, each for its node.
    takes_one
        Whether tasks of these shapes close a node to each other.
    """

    shapes: Bools
    tasks: Rows
    takes_one: bool


class RoomColumns(NamedTuple):
    """Columns of room, of what tasks hold and of what the need asks for; R' resources.

    Attributes
    ----------
    request: int64[S, R']
        What a task of each of the need's shapes asks for.
    held: int64[K, R']
        What tasks hold, by form.
    shape: int64[K]
        The row of each form in ``Snapshot.shapes``; the first are all these in order.
    form: int32[M]
        The form of each entry.
    future, capacity, nominated: int64[N, R']
        Of the nodes, see ``Room``.
    cards
        How many of the resources, the last ones, are cards and what a node has of all of them together. Of a single
        card nothing is asked: see ``most_on_cards``.
    """

    request: Longs
    held: Longs
    shape: Rows
    form: Ids
    future: Longs
    capacity: Longs
    nominated: Longs
    cards: int = 0

    @property
    def without_cards(self) -> int:
        """How many resources are no cards."""
        return int(self.held.shape[1]) - self.cards

    def told_apart(self, some: Rows, kind: Rows, kinds: int) -> tuple[Rows, Rows, Ids]:
        """The forms of some entries of several kinds; each kind of a form is a form of its own.

        They come behind the forms that there are.

        Parameters
        ----------
        some, kind: int64[K]
            The entries, and the kind of each, below ``kinds``.

        Returns
        -------
        Of each new form the old one and the kind, int64[F] both; and the form of every entry.
        """
        form = self.form.copy()
        code = form[some] * np.int64(kinds) + kind
        used = np.bincount(code, minlength=len(self.held) * kinds) > 0
        of, kind_of = np.divmod(np.flatnonzero(used), kinds)
        form[some] = len(self.held) - 1 + np.cumsum(used)[code]
        return of, kind_of, sealed(form)


def room_columns(snapshot: Snapshot, need: Need, closing: Sequence[Closing]) -> RoomColumns:
    """The resources, and one more for each of ``closing``."""
    room, held, form = snapshot.room, snapshot.shapes.request, snapshot.placed.shape
    every = np.arange(len(held))
    if not closing:
        return RoomColumns(need.request, held, every, form, room.future, room.capacity, room.nominated)
    there = np.array([1 if one.takes_one else _WHOLE for one in closing])
    holds = np.zeros((len(closing), len(snapshot.tasks)), bool)
    for at, one in enumerate(closing):
        holds[at, one.tasks] = True
    entries = holds[:, snapshot.occupancy.task]
    some = np.flatnonzero(entries.any(axis=0))
    kinds, kind = unique_inverse(np.vstack([form[some], entries[:, some]]).T)
    more = np.concatenate([np.zeros((len(held), len(there)), np.int64), kinds[:, 1:] * there])
    form = form.copy()
    form[some] = len(held) + kind
    used = np.zeros((len(snapshot.nodes), len(closing)), np.int64)
    np.add.at(used, snapshot.placed.node[some], entries[:, some].T * there)
    asked = np.array([one.shapes for one in closing]).T
    return RoomColumns(
        wider(need.request, asked),
        wider(np.concatenate([held, held[kinds[:, 0]]]), more),
        np.append(every, kinds[:, 0]),
        frozen(form, np.int32),
        wider(room.future, there - used),
        wider(room.capacity, np.broadcast_to(there, used.shape)),
        wider(room.nominated, np.zeros_like(used)),
    )


def wider(columns: Longs, *more: Longs | Bools) -> Longs:
    """The columns, and some more of the same rows."""
    return sealed(np.concatenate([columns, *more], axis=1, dtype=np.int64))
