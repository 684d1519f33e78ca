"""The result of a simulation as plain data: what each cycle decided, and how things stand in the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.columns.card_names import card_names
from actors.columns.names import Names
from pipeline.cluster.arrays import NONE, UNLIMITED, Longs
from pipeline.cluster.resources import CPU
from pipeline.cluster.rules.minima_met import minima_met
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import GONE, PENDING, PHASE_INQUEUE, PHASE_NAMES, PHASE_RUNNING, STATUS_NAMES, TERMINATING
from pipeline.cycle import Cycle
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context


def told_cycle(names: Names, done: Cycle) -> dict[str, Any]:
    """What a cycle decided."""
    tasks = done.snapshot.tasks
    evictions = [
        {
            "task": names.tasks[task],
            "podgroup": names.podgroups[tasks.podgroup[task]],
            "action": statement.action,
            "preemptor": names.podgroups[statement.preemptor] if statement.preemptor != NONE else None,
        }
        for statement in done.statements
        for task in statement.evictions.tolist()
    ]
    promised = np.flatnonzero((tasks.nominated != NONE) & np.isin(tasks.status, (PENDING, TERMINATING)))
    bindings = [
        {"task": names.tasks[task], "node": names.nodes[node], **_on_card("card", done.snapshot, node, card)}
        for made in done.statements
        for task, node, card in np.stack([made.bound, made.bound_node, made.bound_card], axis=1).tolist()
    ]
    nominations = [
        {
            "task": names.tasks[task],
            "node": names.nodes[tasks.nominated[task]],
            **_on_card("card", done.snapshot, tasks.nominated[task], tasks.nominated_card[task]),
        }
        for task in promised
    ]
    return {"evictions": evictions, "nominations": nominations, "bindings": bindings}


def final(names: Names, snapshot: Snapshot) -> dict[str, Any]:
    """Where each task is in the end."""
    tasks, nodes = snapshot.tasks, [*names.nodes, None]  # the last is the name of NONE
    places = tasks.status, tasks.node, tasks.card, tasks.nominated, tasks.nominated_card
    columns = (column.tolist() for column in places)
    ended = {}
    for task, status, node, card, promised, promised_card in zip(names.tasks, *columns, strict=True):
        if status == GONE:
            continue
        ended[task] = {"status": STATUS_NAMES[status], "node": nodes[node], "nominated_node": nodes[promised]}
        ended[task] |= _on_card("card", snapshot, node, card)
        ended[task] |= _on_card("nominated_card", snapshot, promised, promised_card)
    return ended


def _on_card(key: str, snapshot: Snapshot, node: int, card: int) -> dict[str, str]:
    """The name of a card under a key; empty if there is none, so that output without cards has no such key."""
    return {} if NONE in (node, card) else {key: card_names(snapshot, node)[card]}


def phases(names: Names, snapshot: Snapshot) -> dict[str, str]:
    """Phases as a fleet would report them: Running while a podgroup is ready and has running tasks."""
    whole = minima_met(snapshot).ready & (snapshot.counts.running > 0)
    shown = np.where(whole, PHASE_RUNNING, np.minimum(snapshot.podgroups.phase, PHASE_INQUEUE))
    return {name: PHASE_NAMES[phase] for name, phase in zip(names.podgroups, shown.tolist(), strict=True)}


def fair_share(names: Names, context: Context) -> dict[str, dict[str, float | str]]:
    """The fair share of each queue; empty if no plugin has one."""
    share = Host(context).fair_share()
    if share is None:
        return {}
    resources = context.snapshot.vocabulary.resources
    return {
        queue: {resource: _amount(share, row, at) for at, resource in enumerate(resources) if resource != "pods"}
        for row, queue in enumerate(names.queues)
    }


def _amount(share: Longs, row: int, at: int) -> float | str:
    """An amount in cores, bytes or pieces; text if it is unlimited."""
    value = int(share[row, at])
    if value >= UNLIMITED:
        return "unlimited"
    return value / 1000 if at == CPU else value
