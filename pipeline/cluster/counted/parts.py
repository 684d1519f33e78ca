"""Where the roles and the subgroups of each podgroup are, and what its roles need together."""

from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import Longs, offsets, sealed
from pipeline.cluster.tables import Roles, Subgroups


@dataclass(frozen=True)
class Parts:
    """Rows of the parts of podgroups.

    Attributes
    ----------
    role_start, subgroup_start: int64[G + 1]
        The roles of podgroup ``g`` are rows ``role_start[g]:role_start[g + 1]``; its subgroups
        are found in the same way.
    role_minimum: int64[G]
        Sum of the minima of each podgroup's roles.
    """

    role_start: Longs
    subgroup_start: Longs
    role_minimum: Longs


def parts_of(podgroups: int, roles: Roles, subgroups: Subgroups) -> Parts:
    """The parts of this many podgroups."""
    least = np.bincount(roles.podgroup, weights=roles.min_available, minlength=podgroups)
    return Parts(
        offsets(roles.podgroup, podgroups), offsets(subgroups.podgroup, podgroups), sealed(least.astype(np.int64))
    )
