"""The columns of a generated fleet: what was drawn, and beside it what is the same for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.arrays import NONE, UNLIMITED, UNSET, Floats, Longs, Rows, frozen
from pipeline.cluster.orders import dense_rank
from pipeline.cluster.tables import (
    OPEN,
    PENDING,
    PHASE_INQUEUE,
    PHASE_RUNNING,
    RUNNING,
    Nodes,
    Podgroups,
    Queues,
    Tasks,
)


def same_nodes(nodes: int, each: Sequence[int]) -> Nodes:
    """Nodes that are alike; ``each`` has what one offers."""
    zeros = frozen(np.zeros(nodes), np.int32)
    return Nodes(
        allocatable=frozen(np.tile(np.array(each, np.int64), (nodes, 1)), np.int64),
        schedulable=frozen(np.ones(nodes), np.bool_),
        taint_set=zeros,
        labels=frozen(np.zeros((nodes, 0)), np.int32),
        cards=frozen(np.zeros((nodes, 0)), np.int64),
        card_set=zeros,
        revision=frozen(np.ones(nodes), np.int64),
    )


def queues_of(queues: int, used: Longs) -> Queues:
    """Queues that deserve 40 to 80 % of an equal share of what is used; that of the gang, the last one, a fifth."""
    many, wide = queues + 1, len(used)
    parts = np.append(0.8 * np.linspace(0.5, 1.0, queues) / max(queues, 1), 0.2)
    deserved = np.floor(parts[:, None] * used).astype(np.int64)
    zeros = frozen(np.zeros(many), np.float64)
    return Queues(
        parent=frozen(np.full(many, NONE), np.int32),
        priority=frozen(np.zeros(many), np.int32),
        weight=frozen(np.ones(many), np.float64),
        over_quota_weight=frozen(np.ones((many, wide)), np.float64),
        usage=frozen(np.zeros((many, wide)), np.float64),
        guarantee=frozen(np.zeros((many, wide)), np.int64),
        deserved=frozen(deserved, np.int64),
        capability=frozen(np.full((many, wide), UNLIMITED), np.int64),
        reclaimable=frozen(np.ones(many), np.bool_),
        state=frozen(np.full(many, OPEN), np.uint8),
        preempt_min_runtime_s=frozen(np.full(many, np.nan), np.float64),
        reclaim_min_runtime_s=frozen(np.full(many, np.nan), np.float64),
        created=zeros,
        order=frozen(np.arange(many), np.int64),
        revision=frozen(np.ones(many), np.int64),
    )


@dataclass(frozen=True)
class Columns:
    """Columns of podgroups and tasks: ``groups`` with ``running`` tasks, then the gang with ``waiting`` ones.

    Attributes
    ----------
    urgency
        Priority of the gang.
    arrived
        When the gang came, in seconds.
    resources
        How many resources there are.
    """

    groups: int
    running: int
    waiting: int
    urgency: int
    arrived: float
    resources: int

    def podgroups(
        self,
        queue: Rows,
        priority: Rows,
        minimum: Rows,
        started: Floats,
        gang_queue: int,
        level: int,
    ) -> Podgroups:
        """The table of podgroups; the gang is the last row."""
        many = self.groups + 1
        yes, unset = frozen(np.ones(many), np.bool_), frozen(np.full(many, NONE), np.int32)
        unknown = frozen(np.full(many, np.nan), np.float64)
        created = np.append(started, self.arrived)
        return Podgroups(
            queue=frozen(np.append(queue, gang_queue), np.int32),
            namespace=frozen(np.zeros(many), np.int32),
            priority=frozen(np.append(priority, self.urgency), np.int32),
            preemptible=yes,
            may_preempt=yes,
            min_available=frozen(np.append(minimum, self.waiting), np.int32),
            min_resources=frozen(np.full((many, self.resources), UNSET), np.int64),
            phase=frozen(np.append(np.full(self.groups, PHASE_RUNNING), PHASE_INQUEUE), np.uint8),
            match_policy=frozen(np.zeros(many), np.uint8),
            gang=unset,
            gang_group=unset,
            gather=unset,
            required_level=frozen(np.append(np.full(self.groups, NONE), level), np.int32),
            preferred_level=unset,
            min_subgroups=unset,
            created=frozen(created, np.float64),
            started=frozen(np.append(started, np.nan), np.float64),
            stale_since=unknown,
            stale_grace_s=unknown,
            last_checkpoint=unknown,
            preemption_delay_s=frozen(np.zeros(many), np.float64),
            wait_s=unknown,
            order=frozen(dense_rank(created, np.arange(many)), np.int64),
            alive=yes,
            revision=frozen(np.ones(many), np.int64),
        )

    def tasks(
        self, group: Rows, shape: Rows, role: Rows, node: Rows, priority: Rows, started: Floats, gang_shape: int
    ) -> Tasks:
        """The table of tasks; those of the gang are the last rows."""
        many = self.running + self.waiting
        yes, no = frozen(np.ones(many), np.bool_), frozen(np.zeros(many), np.bool_)

        def column(running: NDArray[Any], waiting: object, dtype: type) -> NDArray[Any]:
            return frozen(np.append(running, np.broadcast_to(np.asarray(waiting), self.waiting)), dtype)

        created = column(started[group], self.arrived, np.float64)
        return Tasks(
            podgroup=column(group, self.groups, np.int32),
            shape=column(shape, gang_shape, np.int32),
            role=column(role, NONE, np.int32),
            subgroup=frozen(np.full(many, NONE), np.int32),
            priority=column(priority[group], self.urgency, np.int32),
            preemptible=yes,
            may_preempt=yes,
            gone_when_evicted=no,
            gated=no,
            critical=no,
            best_effort=no,
            status=column(np.full(self.running, RUNNING), PENDING, np.uint8),
            node=column(node, NONE, np.int32),
            nominated=frozen(np.full(many, NONE), np.int32),
            card=frozen(np.full(many, NONE), np.int32),
            nominated_card=frozen(np.full(many, NONE), np.int32),
            index=frozen(np.append(np.full(self.running, NONE), np.arange(self.waiting)), np.int32),
            number=frozen(np.full(many, NONE), np.int32),
            label_set=frozen(np.zeros(many), np.int32),
            created=created,
            order=frozen(dense_rank(created, np.arange(many)), np.int64),
            incarnation=frozen(np.ones(many), np.int64),
            revision=frozen(np.ones(many), np.int64),
        )
