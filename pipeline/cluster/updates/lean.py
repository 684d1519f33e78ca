"""News for a reader that has the snapshot before it: what that snapshot says already is left out.

New rows and nodes numbered anew come with the whole vocabulary, which would be most of the message. Many small columns
go as a few large ones: each array takes time to send, however short it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Podgroups, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.updates.events import Changes, NewRows, News, NodesRelaid
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.records import replace

_NO_WORDS = Vocabulary(())
#: A field of the vocabulary, how many of the known entries come first, and those behind them.
Words = tuple[str, int, tuple[Any, ...]]
#: The tables of new rows by field, and the fields that are columns.
_TABLES: dict[str, Any] = {
    "shapes": Shapes, "podgroups": Podgroups, "roles": Roles, "subgroups": Subgroups, "tasks": Tasks, "edits": Tasks,
}  # fmt: skip
_COLUMNS = tuple(one.name for one in fields(NewRows) if one.name not in {*_TABLES, "vocabulary", "budgets", "news"})


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


@dataclass(frozen=True)
class LeanRows:
    """``NewRows`` but for its vocabulary, all columns as one; no budgets if they are the known ones."""

    columns: BundledColumns
    budgets: Budgets | None
    news: int


@dataclass(frozen=True)
class LeanNews:
    """News without what its reader has already.

    Attributes
    ----------
    news
        Without vocabulary and new rows.
    words
        What its vocabulary has beyond the known one.
    rows
        Its new rows.
    """

    news: News
    words: tuple[Words, ...] = ()
    rows: LeanRows | None = None


def lean(news: News, before: Snapshot) -> LeanNews:
    """News without what the snapshot on which it is folded says already."""
    if isinstance(news, NodesRelaid):
        words = _beyond(before.vocabulary, news.vocabulary)
        return LeanNews(replace(news, vocabulary=_NO_WORDS), words)
    if not isinstance(news, Changes) or news.new_rows is None:
        return LeanNews(news)
    rows = news.new_rows
    tables = [getattr(getattr(rows, name), one.name) for name, kind in _TABLES.items() for one in fields(kind)]
    columns = bundled([*tables, *(getattr(rows, name) for name in _COLUMNS)])
    budgets = None if _equal(rows.budgets, before.budgets) else rows.budgets
    words = _beyond(before.vocabulary, rows.vocabulary)
    return LeanNews(replace(news, new_rows=None), words, LeanRows(columns, budgets, rows.news))


def full(said: LeanNews, before: Snapshot) -> News:
    """The news that ``lean`` made this from, given the same snapshot."""
    news, rows = said.news, said.rows
    if isinstance(news, NodesRelaid):
        return replace(news, vocabulary=_with(before.vocabulary, said.words))
    if not isinstance(news, Changes) or rows is None:
        return news
    columns = opened(rows.columns)
    made: dict[str, Any] = {name: kind(*(next(columns) for _ in fields(kind))) for name, kind in _TABLES.items()}
    made |= zip(_COLUMNS, columns, strict=True)
    whole = NewRows(
        vocabulary=_with(before.vocabulary, said.words),
        budgets=before.budgets if rows.budgets is None else rows.budgets,
        news=rows.news,
        **made,
    )
    return replace(news, new_rows=whole)


def _beyond(known: Vocabulary, new: Vocabulary) -> tuple[Words, ...]:
    found = []
    for field in fields(Vocabulary):
        was, now = getattr(known, field.name), getattr(new, field.name)
        if now is not was and now != was:
            kept = len(was) if now[: len(was)] == was else 0
            found.append((field.name, kept, now[kept:]))
    return tuple(found)


def _with(known: Vocabulary, words: tuple[Words, ...]) -> Vocabulary:
    if not words:
        return known
    return replace(known, **{name: (*getattr(known, name)[:kept], *more) for name, kept, more in words})


def _equal(new: Budgets, known: Budgets) -> bool:
    columns = [field.name for field in fields(Budgets)]
    return new is known or all(np.array_equal(getattr(new, one), getattr(known, one)) for one in columns)


# -- many columns as a few ---------------------------------------------------------------------------------------------


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
