"""Growing the resource axis: the first task that asks for a new resource widens every table of quantities."""

import numpy as np

from pipeline.cluster.arrays import UNLIMITED, UNSET, Longs, frozen
from pipeline.cluster.snapshot import Snapshot
from pipeline.records import replace


def widened(snapshot: Snapshot, resources: tuple[str, ...]) -> Snapshot:
    """The snapshot on a resource axis that has all of its own resources and further ones.

    Amounts of the new resources are 0; a value that a queue states for all resources holds for the new ones too.
    """
    if resources == snapshot.vocabulary.resources:
        return snapshot
    place = np.array([resources.index(name) for name in snapshot.vocabulary.resources], np.int64)

    def wide(column: Longs, fill: Longs | int) -> Longs:
        result = np.empty((len(column), len(resources)), np.int64)
        result[:] = fill if isinstance(fill, int) else fill[:, None]
        result[:, place] = column
        return frozen(result, np.int64)

    queues = snapshot.queues
    entitled_to_all = np.where((queues.deserved == UNLIMITED).all(axis=1), UNLIMITED, UNSET)
    share = np.ones((len(queues), len(resources)))
    weights = queues.over_quota_weight
    share[:] = np.where((weights == weights[:, :1]).all(axis=1), weights[:, 0], 1.0)[:, None]  # what all share, else 1
    share[:, place] = weights
    usage = np.zeros(share.shape)
    usage[:, place] = queues.usage
    return replace(
        snapshot,
        vocabulary=replace(snapshot.vocabulary, resources=resources),
        nodes=replace(snapshot.nodes, allocatable=wide(snapshot.nodes.allocatable, 0)),
        shapes=replace(snapshot.shapes, request=wide(snapshot.shapes.request, 0)),
        podgroups=replace(snapshot.podgroups, min_resources=wide(snapshot.podgroups.min_resources, UNSET)),
        queues=replace(
            queues,
            over_quota_weight=frozen(share, np.float64),
            usage=frozen(usage, np.float64),
            guarantee=wide(queues.guarantee, 0),
            deserved=wide(queues.deserved, entitled_to_all),
            capability=wide(queues.capability, UNLIMITED),
        ),
    )
