"""Tables for fleets that are made up: what is said of their rows, and in all other columns what is usual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_args

import numpy as np

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, frozen
from pipeline.cluster.tables import Nodes, Podgroups, Queues, Tasks

Table = TypeVar("Table", Nodes, Podgroups, Queues, Tasks)

_AMOUNTS = ("allocatable", "over_quota_weight", "usage", "guarantee", "deserved", "capability", "min_resources")
_NOTHING = ("labels", "cards")
#: By value the columns in which it is usual; elsewhere 0 is, and that rows come in their order.
_USUAL: Mapping[float, tuple[str, ...]] = {
    NONE: (
        "parent", "gang", "gang_group", "gather", "required_level", "preferred_level", "min_subgroups", "subgroup",
        "role", "node", "nominated", "card", "nominated_card", "index", "number",
    ),
    1: ("schedulable", "weight", "over_quota_weight", "reclaimable", "preemptible", "may_preempt", "alive"),
    np.nan: (
        "preempt_min_runtime_s", "reclaim_min_runtime_s", "started", "stale_since", "stale_grace_s", "last_checkpoint",
        "wait_s",
    ),
    UNSET: ("deserved", "min_resources"),
    UNLIMITED: ("capability",),
}  # fmt: skip
_VALUE = {name: value for value, names in _USUAL.items() for name in names}


def table(kind: type[Table], many: int, wide: int = 0, **said: Any) -> Table:
    """A table of ``many`` rows.

    Parameters
    ----------
    wide
        How many resources there are.
    said
        Values of columns that differ from what is usual: one for all rows, or one for each.
    """
    columns = {}
    for each in fields(kind):
        name, dtype = each.name, get_args(get_args(each.type)[1])[0]
        usual = np.arange(many) if name == "order" else _VALUE.get(name, 0)
        shape = (many, wide) if name in _AMOUNTS else (many, 0) if name in _NOTHING else (many,)
        values = np.asarray(said.get(name, usual), dtype)
        columns[name] = frozen(values if values.ndim == len(shape) else np.broadcast_to(values, shape), dtype)
    return kind(**columns)
