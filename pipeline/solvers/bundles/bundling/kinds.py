"""Podgroups by what their candidates free, for bounds that sum over all tasks of a domain."""

from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import Codes, Longs, sealed
from pipeline.solvers.bundles.bundling.records import Terms

#: Above every level: there is no selection.
HOPELESS = 1 << 40


class GroupKinds(NamedTuple):
    """Podgroups by what their candidates free, so that one table says all that a sum over tasks must know.

    Attributes
    ----------
    levels
        Levels are below this.
    of: uint32[G]
        0: its candidates cannot go. Else by level, each kind after the one before: those that go only with the whole
        podgroup, those that are all surplus, and those with some surplus.
    priority: int64[levels]
        Priority of each level where levels are priorities, else 0.
    """

    levels: int
    of: Codes
    priority: Longs


def kinds_of(terms: Terms, priority: Longs) -> GroupKinds:
    """The kinds of all podgroups; ``priority`` as in ``GroupKinds``."""
    groups, spare, rules, levels = terms.groups, terms.surplus.gang, terms.rules, len(priority)
    kind = (groups.level + 1).astype(np.uint32)
    kind += np.uint32(levels) * (spare < 0)
    kind += np.uint32(2 * levels) * (spare > 0)
    if not rules.allow_whole:
        kind *= spare != 0
    elif rules.cluster_wide:
        kind *= (spare != 0) | groups.complete
    return GroupKinds(levels, sealed(kind), priority)
