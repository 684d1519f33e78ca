"""Snapshots in Ray's object store: a new one costs what changed since the one before.

The fold shares the arrays that it did not change, so an array that was stored once stands for itself in every later
snapshot. What is new in a snapshot is stored together, as one page: a `put` costs a millisecond, whatever its size. A
snapshot is a small frame that says where on which page each of its arrays is. A process that fetches frames keeps the
pages that it has fetched, for the next one.

A page holds no references, a frame holds those of its pages only: Ray frees a page when no frame that is still held
needs it. One array that is still in use keeps its whole page, so all is stored anew once too much is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import ray

from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.vocabulary import Vocabulary

#: Smaller arrays travel in the frame.
_ON_A_PAGE_BYTES = 4096
#: The pages of a snapshot that one process wrote may hold this many times the bytes of the snapshot.
_KEPT = 2.0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array is: the page by its number in the frame, and the position on it."""

    page: int
    at: int


@dataclass(frozen=True, slots=True)
class _Table:
    """A dataclass taken apart: its class, and per field a value, a place or a table."""

    kind: type[Any]
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A snapshot as it is published: references of its pages, and what is where."""

    pages: tuple[Any, ...]
    snapshot: Any


class SnapshotStore:
    """What one process has stored and fetched. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._published: tuple[Snapshot, Any] | None = None
        self._fetched: tuple[Any, Snapshot] | None = None
        #: What is on each page, by reference: of the snapshot last published, and of the one last fetched.
        self._written: dict[Any, list[Any]] = {}
        self._read: dict[Any, list[Any]] = {}

    def publish(self, snapshot: Snapshot) -> Any:
        """A reference to the snapshot. Arrays that the snapshots last published or fetched have too are not copied."""
        if self._fetched is not None and self._fetched[1] is snapshot:
            return self._fetched[0]
        if self._published is None or self._published[0] is not snapshot:
            self._published = snapshot, self._stored(snapshot)
        return self._published[1]

    def fetch(self, reference: Any, limit_s: float) -> Snapshot:
        """The snapshot of a reference: its arrays are read-only views of the store.

        Raises
        ------
        ray.exceptions.RayError
            When it is lost, or does not arrive in time.
        """
        if self._fetched is None or self._fetched[0] != reference:
            frame: _Frame = ray.get(reference, timeout=limit_s)
            missing = [page for page in frame.pages if page not in self._read]
            arrived = dict(zip(missing, ray.get(missing, timeout=limit_s), strict=True))
            self._read = {page: arrived[page] if page in arrived else self._read[page] for page in frame.pages}
            self._fetched = reference, _together(frame.snapshot, list(self._read.values())).opened()
        return self._fetched[1]

    def _stored(self, snapshot: Snapshot) -> Any:
        packed = snapshot.packed()
        values = {id(value): value for value in _large(packed)}
        pages = self._read | self._written
        places = {id(value): (page, at) for page, on in pages.items() for at, value in enumerate(on)}
        known = {key: places[key] for key in values if key in places}
        new = [value for key, value in values.items() if key not in known]
        ours = {page for page, _ in known.values()} & self._written.keys()
        kept = sum(_bytes(value) for page in ours for value in pages[page]) + sum(map(_bytes, new))
        if kept > _KEPT * sum(map(_bytes, values.values())):
            known, new = {}, list(values.values())
        used = {page for page, _ in known.values()}
        self._written = {page: on for page, on in pages.items() if page in used}
        if new:
            page = ray.put(new)
            self._written[page] = new
            known |= {id(value): (page, at) for at, value in enumerate(new)}
        numbers = {page: number for number, page in enumerate(self._written)}
        placed = {key: _Place(numbers[page], at) for key, (page, at) in known.items()}
        return ray.put(_Frame(tuple(self._written), _apart(packed, placed)))


def _is_large(value: Any) -> bool:
    return isinstance(value, Vocabulary) or (isinstance(value, np.ndarray) and value.nbytes >= _ON_A_PAGE_BYTES)


def _bytes(value: Any) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else 0


def _large(value: Any) -> Iterator[Any]:
    """The arrays of a value that belong on pages."""
    if _is_large(value):
        yield value
    elif is_dataclass(value):
        for one in fields(value):
            yield from _large(getattr(value, one.name))


def _apart(value: Any, places: Mapping[int, _Place]) -> Any:
    """A value with places instead of the arrays that are on pages."""
    if id(value) in places:
        return places[id(value)]
    if is_dataclass(value):
        return _Table(type(value), tuple(_apart(getattr(value, one.name), places) for one in fields(value)))
    return value


def _together(part: Any, pages: Sequence[Sequence[Any]]) -> Any:
    """The value that `_apart` made this from."""
    if isinstance(part, _Table):
        return part.kind(*(_together(inner, pages) for inner in part.parts))
    return pages[part.page][part.at] if isinstance(part, _Place) else part
