"""The domains in which a preemptor may lie, before room is looked at.

The first plugin with an opinion decides, as in phase 1 of "Gang-Aware Preemption and Reclaim". A required level is
a hard constraint: without any plugin that reads topology no domain is offered.
"""

import numpy as np

from pipeline.cluster.arrays import NO_ROWS, NONE, Rows
from pipeline.cluster.topology import ROOT
from pipeline.plugins.host import Host
from pipeline.policy import Purpose


def domains_of(host: Host, podgroups: tuple[int, ...], purpose: Purpose) -> Rows:
    """int64[D]: domain rows in which the podgroups may lie together, the preferred ones first."""
    offered = host.domains(podgroups, purpose)
    if offered is not None:
        return offered
    snapshot = host.context.snapshot
    if (snapshot.podgroups.required_level[list(podgroups)] != NONE).any():
        return NO_ROWS
    return np.array([ROOT], np.int64)
