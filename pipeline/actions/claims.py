"""What is closed to podgroups: nodes of victims that do not end, and domains that are kept for one podgroup.

Where a large gang's plans are refused again and again, because a smaller one was quicker, its domain is claimed for it
(Omega gives such jobs up, Kueue lets them starve). Within it only the owner is placed; podgroups that are served before
the owner may still make room there. What was promised before is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, Rows, distinct, mask_of
from pipeline.cluster.rules.gang_groups import GangGroup
from pipeline.decision.claim import Claim, claimed_nodes
from pipeline.placement.serving_order import in_serving_order
from pipeline.plugins.host import Host


@dataclass(frozen=True, slots=True)
class Closed:
    """What some podgroups may not use, in rows of one snapshot.

    Attributes
    ----------
    overdue
        Nodes of victims that do not end, and the time (seconds) until which no search counts on them.
    claims
        Domains that are kept for a podgroup.
    """

    overdue: tuple[tuple[int, float], ...] = ()
    claims: tuple[Claim, ...] = ()

    def active_at(self, now: float) -> "Closed":
        """What is closed at a time (seconds)."""
        if not self.overdue and not self.claims:
            return self
        return Closed(
            tuple(one for one in self.overdue if one[1] > now), tuple(one for one in self.claims if one.until > now)
        )


def closed_to(host: Host, closed: Closed, gang_groups: Sequence[GangGroup]) -> list[Rows]:
    """Per gang group the nodes (int64[M]) on which it must not make room.

    Nodes of victims that do not end are closed to every gang group. A claimed domain is closed to gang groups that are
    served after its owner.
    """
    snapshot, claims = host.context.snapshot, closed.claims
    overdue = distinct(np.array([node for node, _ in closed.overdue], np.int64)) if closed.overdue else NO_ROWS
    if not claims:
        return [overdue] * len(gang_groups)
    rows = [*(row for gang_group in gang_groups for row in gang_group), *(one.podgroup for one in claims)]
    in_turn = in_serving_order(host, mask_of(rows, len(snapshot.podgroups)), evicting=True)
    place_of = {row: at for at, gang_group in enumerate(in_turn) for row in gang_group}
    return [
        np.union1d(
            overdue,
            claimed_nodes(snapshot, [one for one in claims if place_of[one.podgroup] < place_of[gang_group[0]]]),
        )
        for gang_group in gang_groups
    ]
