"""A reclaim takes from the fairest queues that suffice, since a price compares them before work."""

import numpy as np
import pytest

from pipeline.solvers.bundles.covering.chosen import Selection
from pipeline.solvers.bundles.covering.exact import MOST
from pipeline.solvers.bundles.covering.selection import select
from tests.support.builders import Gang, Task, cluster, gang, searching

#: Nodes of each of three queues; with so many tasks not every set of victims is tried.
NODES = 5
ON = {queue: range(NODES * queue, NODES * (queue + 1)) for queue in range(3)}


def reclaimed(needs: list[int], **said: object) -> Selection:
    """Victims for tasks of some GPUs; the fairest queue has gangs, the next two surplus of lone tasks."""
    gangs = [gang(4, [node], gpu=1) for node in ON[0]]
    gangs += [gang(4, [node], gpu=1, minimum=0) for queue in (1, 2) for node in ON[queue]]
    waiting = Gang([Task(gpu=gpu) for gpu in needs], len(needs), priority=9)
    snapshot = cluster([{"gpu": 4}] * (3 * NODES), [*gangs, waiting])
    assert len(snapshot.tasks) - len(needs) > MOST
    rank = np.array([*np.repeat([0, 1, 2], NODES), 0])
    found = select(searching(snapshot, len(gangs), rank_before=rank, queue_rank=rank, **said), 0)
    assert isinstance(found, Selection)
    return found


@pytest.mark.parametrize(
    ("needs", "rank", "broken"),
    [
        ([4, 4], 0, 2),
        ([4] * 6, 1, 1),  # among the queues that are needed, surplus goes first
        ([4] * 11, 2, 1),
        ([4, 2, 2, 3], 0, 3),  # where slots leave a doubt, the gang is placed
        ([4, 4, 4, 4, 4, 3, 2], 1, 2),
    ],
)
def test_podgroups_of_the_fairest_queue_break_before_surplus_of_another_goes(
    needs: list[int], rank: int, broken: int
) -> None:
    found = reclaimed(needs)
    assert (found.price.queue_rank, found.price.gangs_broken) == (rank, broken)


@pytest.mark.parametrize(("least", "rank", "broken"), [(9, 0, 3), (13, 0, 4), (21, 1, 1)])
def test_where_the_law_needs_more_victims_than_the_nodes_the_fairest_queues_that_suffice_lose_them(
    least: int, rank: int, broken: int
) -> None:
    found = reclaimed([4, 4], validate_set=lambda rows: len(rows) >= least)
    assert (found.price.queue_rank, found.price.gangs_broken) == (rank, broken)


def test_where_the_order_of_bundles_is_kept_surplus_of_any_queue_goes_first() -> None:
    found = reclaimed([4, 4], keep_order=True)
    assert (found.price.queue_rank, found.price.gangs_broken) == (1, 0)


def test_plugins_that_refuse_the_fairest_queue_send_a_reclaim_to_the_next() -> None:
    found = reclaimed([4, 4], quota_filter=lambda rows, _: rows >= 4 * NODES)
    assert (found.price.queue_rank, found.price.gangs_broken) == (1, 0)
