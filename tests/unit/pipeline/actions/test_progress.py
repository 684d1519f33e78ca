"""How far a cycle has come: what a plan takes back of what was decided before it."""

from dataclasses import replace

import numpy as np

from pipeline.actions.progress import HoldingBack, Planned, Progress
from pipeline.cluster.arrays import NONE
from pipeline.cycle import cycle
from pipeline.decision.plan import Plan
from pipeline.decision.statement import statement
from tests.support.asking import DEFAULT
from tests.support.builders import cluster, gang
from tests.support.editing import with_quota

#: One node, full of work of queue 1; a podgroup of queue 0 reclaims it, and a more important one of its queue waits.
STATE = with_quota(
    cluster([{"gpu": 4}], [gang(1, [0], gpu=4, queue=1), gang(1, gpu=4), gang(1, gpu=5, priority=1)]),
    deserved={0: {"gpu": 4, "cpu": 4000}},
)
POLICY = replace(DEFAULT, actions=("reclaim",))


def taken_by_the_next_plan(*, certain: int) -> list[int]:
    """Tasks of an earlier plan that lose their room to a plan that withdraws its promise."""
    done = cycle(STATE, POLICY, 0.0)
    (earlier,) = done.plans
    made = statement("preempt", 2, nominated=np.array([1]), nominated_node=np.array([NONE]))
    later: Plan = replace(earlier, statement=made)
    progress = Progress(
        done.state,
        POLICY,
        0.0,
        planned=(Planned(earlier, (1,)),),
        held_back=HoldingBack(takes_starts=True),
        certain=certain,
    )
    return progress.retaken_by(later).tolist()


def test_room_that_was_made_is_taken_back_until_its_plan_was_told_to_be_certain() -> None:
    assert taken_by_the_next_plan(certain=0) == [1]
    assert taken_by_the_next_plan(certain=1) == []
