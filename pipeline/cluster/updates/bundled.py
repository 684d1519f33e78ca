"""Many small columns as a few large ones: each array takes time to send, however short it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BundledColumns:
    """Columns, one after the other in a few arrays.

    Attributes
    ----------
    values
        One array for each type.
    shapes
        For each column, in order: in which of ``values`` it is, and its shape.
    """

    values: tuple[NDArray[Any], ...]
    shapes: tuple[tuple[int, tuple[int, ...]], ...]


def bundled(columns: Sequence[NDArray[Any]]) -> BundledColumns:
    """Columns of any types and shapes as one."""
    of_type: dict[np.dtype[Any], list[NDArray[Any]]] = {}
    for column in columns:
        of_type.setdefault(column.dtype, []).append(column.ravel())
    place = {kind: at for at, kind in enumerate(of_type)}
    return BundledColumns(
        tuple(np.concatenate(some) for some in of_type.values()),
        tuple((place[column.dtype], column.shape) for column in columns),
    )


def opened(bundle: BundledColumns) -> Iterator[NDArray[Any]]:
    """The columns in order, read-only."""
    for values in bundle.values:
        values.flags.writeable = False
    begin = [0] * len(bundle.values)
    for at, shape in bundle.shapes:
        first = begin[at]
        begin[at] = first + prod(shape)
        yield bundle.values[at][first : begin[at]].reshape(shape)
