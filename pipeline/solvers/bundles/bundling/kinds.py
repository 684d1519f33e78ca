"""Podgroups by what their candidates free, and shapes by what tasks hold, for bounds that sum over a domain."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Codes, Floats, Longs, Rows, frozen, sealed
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.resources import PODS
from pipeline.cluster.rules.sparing import Quota
from pipeline.solvers.bundles.bundling.records import Terms

#: Above every level: there is no selection.
HOPELESS = 1 << 40


class GroupKinds(NamedTuple):
    """Podgroups by what their candidates free, so that one table says all that a sum over tasks must know; and shapes.

    Attributes
    ----------
    levels
        Levels are below this.
    of: uint32[G]
        0: its candidates cannot go. Else by level, each kind after the one before: those that go only with the whole
        podgroup, those that are all surplus, and those with some surplus.
    priority: int64[levels]
        Priority of each level where levels are priorities, else 0.
    most: float64[levels]
        What podgroups of each level may lose of the scarcest resource, by the quotas of their queues; infinite: all.
    amount: int64[shapes]
        What a task of each shape holds of the scarcest resource.
    size: int64[shapes]
        The place of that amount among the different ones, from 0 for the largest.
    """

    levels: int
    of: Codes
    priority: Longs
    most: Floats
    amount: Longs
    size: Rows


def group_kinds(terms: Terms, priority: Longs, scarce: int) -> GroupKinds:
    """The kinds of all podgroups; ``priority`` as in ``GroupKinds``."""
    groups, spare, rules, levels = terms.groups, terms.surplus.gang, terms.rules, len(priority)
    kind = (groups.level + 1).astype(np.uint32)
    kind += np.uint32(levels) * (spare < 0)
    kind += np.uint32(2 * levels) * (spare > 0)
    if not rules.allow_whole:
        kind *= spare != 0
    elif rules.cluster_wide:
        kind *= (spare != 0) | groups.complete
    most, amount = _most(terms.quota, groups.level, levels, scarce), terms.worth.request[:, scarce]
    size = unique_inverse(-amount)[1]
    return GroupKinds(
        levels, sealed(kind), priority, frozen(most, np.float64), frozen(amount, np.int64), frozen(size, np.int64)
    )


def _most(quota: Quota, level: Longs, levels: int, scarce: int) -> Floats:
    """float64[levels]: see ``GroupKinds.most``. Where shares count, all podgroups of a queue are of one level."""
    entitled, left = quota.entitled, quota.allocated
    if not quota.counted or scarce == PODS or not entitled.counts[:, scarce].any():
        return np.full(levels, np.inf)
    above = np.maximum(left[:, scarce] - entitled.deserved[:, scarce], 0)
    spare = np.append(np.where(entitled.counts[:, scarce], above, np.inf), np.inf)  # the last row stands for no queue
    along = spare[quota.asking.answer].min(axis=1, initial=np.inf)
    level_of = np.full(len(left), NONE)
    level_of[quota.queue] = level
    loses, most = level_of != NONE, np.zeros(levels)
    np.add.at(most, level_of[loses], along[loses])
    return most
