"""Policies and runs of the task-centric actions for tests; and what their statements come to."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pipeline.actions.evict import evict
from pipeline.actions.progress import Progress, StateSoFar
from pipeline.cluster.arrays import NONE
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import PluginSetting, Policy, Purpose
from pipeline.solvers.tasks.asked_node import AskedNode
from pipeline.solvers.tasks.candidates import preemptor_of, victim_order
from pipeline.solvers.tasks.kinds import Withheld, facts_of, fleet_of, no_decisions, task_kind
from pipeline.solvers.tasks.rule import Rule
from pipeline.solvers.tasks.sweeping.following import follow
from pipeline.solvers.tasks.sweeping.sweep import case_of

#: Volcano's usual plugins, with gangs protected.
USUAL = ("priority", "gang", "conformance", "predicates", "network-topology-aware")
CPU = 0


def policy(plugins: Iterable[str | PluginSetting] = USUAL, **preempt_arguments: Any) -> Policy:
    settings = tuple(PluginSetting(one) if isinstance(one, str) else one for one in plugins)
    return Policy(
        "volcano", "", ("preempt", "reclaim"), settings, solvers=(("preempt", "tasks"), ("reclaim", "tasks")),
        action_arguments=(("preempt", tuple(preempt_arguments.items())),),
    )  # fmt: skip


def preempted(snapshot: Snapshot, with_policy: Policy | None = None) -> Progress:
    return evict(Progress(StateSoFar(snapshot), with_policy or policy(), 0.0), "preempt", Purpose.PREEMPT)


def reclaimed(snapshot: Snapshot, with_policy: Policy | None = None) -> Progress:
    return evict(
        Progress(StateSoFar(snapshot), with_policy or policy((*USUAL, "proportion")), 0.0), "reclaim", Purpose.RECLAIM
    )


def on_node(snapshot: Snapshot, with_policy: Policy, task: int, node: int = 0) -> AskedNode:
    """A node for a waiting task in preempt, as plugins are asked about it; its ``case`` is the same in columns."""
    host, podgroup = Host(Context(snapshot, with_policy, 0.0)), int(snapshot.tasks.podgroup[task])
    rule = Rule(Purpose.PREEMPT, (podgroup,))
    preemptor = preemptor_of(host, task, rule)
    quota, limits, facts = host.task_quota(preemptor, rule.point), host.queue_limits(), facts_of(snapshot)
    kind = task_kind(host, task, rule, victim_order(host), quota, limits, Withheld(len(snapshot.nodes)), 0)
    fleet = fleet_of(host, quota, limits)
    follow(facts, fleet, kind, no_decisions(snapshot, 0))
    rows, released, case = case_of(facts, fleet, kind, node, True)
    return AskedNode(host, WhatIf.of(snapshot), preemptor, rule.point, case, rows, released)


def victims(progress: Progress) -> list[int]:
    return sorted(row for made in progress.statements for row in made.evictions.tolist())


def promised(progress: Progress) -> dict[int, int]:
    """Node by task row, of what was newly promised; NONE where a promise was withdrawn."""
    return {
        task: node
        for made in progress.statements
        for task, node in zip(made.nominated.tolist(), made.nominated_node.tolist(), strict=True)
    }


def nominated(snapshot: Snapshot, places: dict[int, int]) -> Snapshot:
    rows, nodes = np.array(list(places), np.int64), np.array(list(places.values()), np.int64)
    return WhatIf.of(snapshot).nominating(rows, nodes).whole


def pinned_nodes(snapshot: Snapshot, podgroup: int) -> list[int]:
    """Where the tasks of a podgroup run or are promised to run."""
    rows = snapshot.tasks_of(podgroup)
    node, wish = snapshot.tasks.node[rows], snapshot.tasks.nominated[rows]
    return sorted(np.where(node == NONE, wish, node)[(node != NONE) | (wish != NONE)].tolist())
