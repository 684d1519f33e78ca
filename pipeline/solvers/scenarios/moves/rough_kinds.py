"""Kinds of tasks as a few rough ones: what takes no task of a rough kind takes none of its kinds.

A fleet may have thousands of kinds that differ a little in what they ask for. What is worked out node by node is worked
out for rough kinds, and there are only a few of these in any fleet. A rough kind asks for the least that any of its
kinds asks for, resource by resource, and may use every node that one of them may use.
"""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Longs, Rows, distinct, paired, unpaired
from pipeline.cluster.orders import dense_rank, ordered_by, unique_inverse
from pipeline.cluster.tables import Shapes

#: Up to this many kinds each is a rough one of its own; of more there are no more rough ones than this.
MOST = 64
#: Amounts are alike at first if they agree in their size in bits and in this many bits after the leading one.
_BITS = 4
#: Bits of a float's fraction.
_FRACTION = 52


class MoverKinds(NamedTuple):
    """What tasks of each kind ask for.

    Attributes
    ----------
    request: int64[K, R], on_card: int64[K]
        ``on_card`` is what it asks of one card, 0 for none.
    access: int64[K]
        The row of ``allowed`` that says which nodes they may use.
    allowed: bool[A, N]
    """

    request: Longs
    on_card: Longs
    access: Rows
    allowed: Bools


class RoughKinds(NamedTuple):
    """Rough kinds of some kinds.

    Attributes
    ----------
    kinds
        The rough ones, [C].
    of: int64[K]
        The rough kind of each kind.
    alone: bool[C]
        Rough kinds of one kind, which are the same as this.
    """

    kinds: MoverKinds
    of: Rows
    alone: Bools


def rough_kinds(shapes: Shapes, shape: Rows, kinds: MoverKinds) -> RoughKinds:
    """The rough kinds of some kinds, each of a ``shape`` (int64[K])."""
    if len(shape) <= MOST:
        return RoughKinds(kinds, np.arange(len(shape)), np.ones(len(shape), bool))
    of = unique_inverse(shapes.once(_rough)[shape])[1]
    order, many = ordered_by(of), np.bincount(of)
    first = many.cumsum() - many
    request = np.minimum.reduceat(kinds.request[order], first)
    on_card = np.minimum.reduceat(kinds.on_card[order], first)
    rough, access = unpaired(distinct(paired(of, kinds.access)))
    allowed = np.array([kinds.allowed[access[rough == one]].any(axis=0) for one in range(len(many))])
    return RoughKinds(MoverKinds(request, on_card, np.arange(len(many)), allowed), of, many == 1)


def _rough(shapes: Shapes) -> Rows:
    """int64[S]: shapes by what they ask for, as at most ``MOST`` kinds.

    Of what differs in the most ways, still and at first, one bit after the other is left out. So what all ask for in a
    few amounts, as devices, stays as it is for longest.
    """
    stated = np.column_stack([shapes.request, shapes.on_card, shapes.constraint])
    columns, ways = stated.astype(np.float64).view(np.int64) >> (_FRACTION - _BITS), _ways(stated)
    columns[:, -1] = shapes.constraint
    kind, kinds = _told_apart(columns)
    while len(kinds) > MOST:
        kinds[:, np.argmax((_ways(kinds) - 1) ** 2 * ways)] >>= 1
        again, kinds = _told_apart(kinds)
        kind = again[kind]
    return kind


def _ways(rows: Longs) -> Longs:
    """int64[C]: how many different numbers each column has."""
    return np.array([len(distinct(column)) for column in rows.T])


def _told_apart(rows: Longs) -> tuple[Rows, Longs]:
    """Which of the different rows each is, and these."""
    kind = dense_rank(*rows.T)
    kinds = np.empty((kind.max(initial=NONE) + 1, rows.shape[1]), np.int64)
    kinds[kind] = rows
    return kind, kinds
