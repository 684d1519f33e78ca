"""News for a reader that has the snapshot before it: what that snapshot says already is left out.

New rows and nodes numbered anew come with the whole vocabulary, which is most of what they would weigh on their way.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipeline.cluster.arrays import frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Budgets
from pipeline.cluster.updates.events import Changes, News, NodesRelaid
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.records import replace

_NO_WORDS = Vocabulary(())
_NO_BUDGETS = Budgets(frozen([], np.int32), frozen(np.zeros((0, 0, 0)), np.bool_))
#: A field of the vocabulary, how many of the known entries come first, and those behind them.
Words = tuple[str, int, tuple[Any, ...]]


@dataclass(frozen=True)
class LeanNews:
    """News without what its reader has.

    Attributes
    ----------
    news
        With no vocabulary, and with no budgets if they are the known ones.
    words
        What its vocabulary has beyond the known one.
    budgets
        Whether its budgets are the known ones.
    """

    news: News
    words: tuple[Words, ...] = ()
    budgets: bool = False


def lean(news: News, before: Snapshot) -> LeanNews:
    """News without what the snapshot says on which it is folded."""
    if isinstance(news, NodesRelaid):
        words = _beyond(before.vocabulary, news.vocabulary)
        return LeanNews(replace(news, vocabulary=_NO_WORDS), words)
    if not isinstance(news, Changes) or news.new_rows is None:
        return LeanNews(news)
    rows, known = news.new_rows, before.budgets
    same = _equal(rows.budgets, known)
    less = replace(rows, vocabulary=_NO_WORDS, budgets=_NO_BUDGETS if same else rows.budgets)
    return LeanNews(replace(news, new_rows=less), _beyond(before.vocabulary, rows.vocabulary), same)


def full(said: LeanNews, before: Snapshot) -> News:
    """The news that ``lean`` made this from, given the same snapshot."""
    news = said.news
    if isinstance(news, NodesRelaid):
        return replace(news, vocabulary=_with(before.vocabulary, said.words))
    if not isinstance(news, Changes) or news.new_rows is None:
        return news
    rows = news.new_rows
    budgets = before.budgets if said.budgets else rows.budgets
    whole = replace(rows, vocabulary=_with(before.vocabulary, said.words), budgets=budgets)
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
    return new is known or (np.array_equal(new.allowed, known.allowed) and np.array_equal(new.covers, known.covers))
