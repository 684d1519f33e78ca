"""What a claimed domain is closed to: only the claim's owner is placed there.

A podgroup that the policy serves before the owner may still make room there. What was promised before is kept.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeline.actions.allocate import allocate
from pipeline.actions.progress import Progress
from pipeline.actions.redeem import redeem
from pipeline.cluster.arrays import Rows
from pipeline.decision.claim import Claim, claimed_nodes
from pipeline.placement.cordoning import without
from pipeline.placement.gang_allocation import allocate as place
from pipeline.placement.starving import in_order, together
from pipeline.plugins.host import Host


def closed_to(host: Host, claims: Sequence[Claim], units: Sequence[tuple[int, ...]]) -> list[Rows]:
    """Per unit the nodes (int64[M]) on which it is not to make room: those claimed for who is served before it."""
    snapshot = host.context.snapshot
    if not claims:
        return [np.zeros(0, np.int64)] * len(units)
    wanted = np.zeros(len(snapshot.podgroups), bool)
    wanted[[*(row for unit in units for row in unit), *(one.podgroup for one in claims)]] = True
    place_of = {row: at for at, unit in enumerate(in_order(host, wanted)) for row in unit}
    return [
        claimed_nodes(snapshot, [one for one in claims if place_of[one.podgroup] < place_of[unit[0]]]) for unit in units
    ]


def allocate_beside(progress: Progress, claims: Sequence[Claim]) -> Progress:
    """Allocate, with the claimed domains open to their owners alone; they are placed before everybody else."""
    if not claims:
        return allocate(progress)
    progress = redeem(progress)
    for claim in claims:
        host, unit = progress.host(), together(progress.snapshot, claim.podgroup)
        queue = progress.snapshot.podgroups.queue[claim.podgroup]
        if host.valid[list(unit)].all() and not host.overused[queue]:
            made = place(host, unit, "allocate")
            progress = progress.decided(made) if made is not None else progress
    nodes = progress.snapshot.nodes
    shut = without(progress.snapshot, claimed_nodes(progress.snapshot, claims))
    done = allocate(replace(progress, snapshot=shut))
    return replace(done, snapshot=replace(done.snapshot, nodes=nodes))
