"""Statements for podgroups alike, one after the other: how many of them are lawful each in its turn."""

from collections.abc import Sequence

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Longs
from pipeline.cluster.resources import fits
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.headroom import room_of
from pipeline.decision.statement import Statement
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor


def lawful_in_turn(snapshot: Snapshot, host: Host, statements: Sequence[Statement], *, sets: bool, rooms: bool) -> int:
    """How many leading statements are lawful, each after those before it.

    Parameters
    ----------
    host
        On the snapshot.
    sets
        Whether the victims of each are asked about as a set.
    rooms
        Whether the queue must have room for each once its victims have gone.
    """
    after, gone = WhatIf.of(snapshot), NO_ROWS
    for at, made in enumerate(statements):
        request: Longs = snapshot.shapes.request[snapshot.tasks.shape[made.nominated]].sum(axis=0)
        preemptor = Preemptor((made.preemptor,), request, made.purpose)
        if sets and not host.on(after, gone).validate_set(preemptor, made.evictions):
            return at
        after, gone = after.evicting(made.evictions), np.concatenate([gone, made.evictions])
        if rooms and not fits(request, room_of(host.on(after, gone), snapshot, made.preemptor)):
            return at
        after = after.nominating(made.nominated, made.nominated_node)
    return len(statements)
