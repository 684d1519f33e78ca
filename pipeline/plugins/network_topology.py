"""The network topology plugin: which domains may hold a podgroup, in order of preference."""

import numpy as np

from pipeline.cluster.arrays import NONE, Ids, Rows
from pipeline.plugins.extension_points import OffersDomains
from pipeline.plugins.plugin import Plugin
from pipeline.policy import Purpose


class NetworkTopology(Plugin, OffersDomains):
    """Turns required and preferred levels into domains.

    Upstream looks at no more than eight domains, the widest first (notes on Volcano, 1.8, items 14 and 15). Here all
    are offered, the narrowest tier first, and the lower bounds of the search decide how many are looked at.
    """

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None:
        """int64[D]: domains in which the podgroups may lie together, or None if none of them states a level.

        A required level admits domains of that level and narrower ones. A preferred level only orders: domains up to it
        come first. A podgroup with running tasks keeps to domains that hold them, so that one with a preferred level
        grows outwards from where it is; the whole cluster is always such a domain.
        """
        snapshot, groups = self._base, self._base.podgroups
        rows = list(podgroups)
        required, preferred = groups.required_level[rows], groups.preferred_level[rows]
        if (required == NONE).all() and (preferred == NONE).all():
            return None
        topology = snapshot.topology
        chosen, tier = np.arange(len(topology)), topology.tier.astype(np.int64)
        for row, level, close in zip(rows, required.tolist(), preferred.tolist(), strict=True):
            if level != NONE:
                chosen = chosen[tier[chosen] <= topology.levels - level]
            if level != NONE or close != NONE:
                chosen = topology.holding(chosen, self._nodes_of(row))
        wanted = int(preferred.max(initial=NONE))
        late = tier > topology.levels - wanted if wanted != NONE else np.zeros(len(tier), bool)
        return chosen[np.lexsort((chosen, tier[chosen], late[chosen]))]

    def _nodes_of(self, podgroup: int) -> Ids:
        """int32[K]: nodes on which tasks of the podgroup run, are bound or are promised."""
        nodes: Ids = self._state.place_of(self._base.tasks_of(podgroup))
        return np.asarray(nodes[nodes != NONE])
