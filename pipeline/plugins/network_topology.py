"""The network topology plugin: which domains may hold a podgroup, in order of preference, and which is the fullest."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.cluster.arrays import NONE, Floats, Ids, Longs, Rows, all_true
from pipeline.cluster.resources import CPU, MEMORY
from pipeline.keeping import cached_property
from pipeline.plugins.arguments import NUMBER, WEIGHTS
from pipeline.plugins.extension_points import OffersDomains, ScoresDomains
from pipeline.plugins.plugin import Context, Plugin
from pipeline.policy import PluginSetting, Purpose

_NONE: Mapping[str, float] = {}


class NetworkTopology(Plugin, OffersDomains, ScoresDomains):
    """Turns required and preferred levels into domains, and scores them by how full the tasks would make them.

    Upstream looks at no more than eight domains for an eviction, the widest first (notes on Volcano, 1.8, items 14 and
    15). Here all are offered, the narrowest tier first, and the lower bounds of the search decide how many are looked
    at. As upstream, only ``allocate`` asks which domain of a tier is the fullest (2.10); evictions go by price.
    """

    ARGUMENTS: ClassVar = {"cpu": NUMBER, "memory": NUMBER, "resources": WEIGHTS}

    def __init__(self, context: Context, setting: PluginSetting) -> None:
        super().__init__(context, setting)
        self._setting = setting

    def domain_score(self, request: Longs, used: Longs, allocatable: Longs) -> Floats:
        """float64[D]: 1 where all that is asked for would be used up, 0 where the tasks together do not fit.

        Weighted by resource: cpu and memory count, and others that the argument ``resources`` lists.
        """
        counts = (request > 0) & (self._weight > 0)
        if not counts.any():
            return np.zeros(len(used))
        there = allocatable[:, counts]
        filled = (used[:, counts] + request[counts]) / np.maximum(there, 1)
        filled[there == 0] = np.inf
        weight = self._weight[counts]
        return np.where((filled <= 1).all(axis=1), (filled * weight).sum(axis=1) / weight.sum(), 0.0)

    @cached_property
    def _weight(self) -> Floats:
        """float64[R]: what each resource counts; made when a domain is scored, which evictions do not ask for."""
        listed = self._setting.argument("resources", _NONE)
        weight = np.array([listed.get(name, 0.0) for name in self._base.vocabulary.resources], np.float64)
        weight[CPU], weight[MEMORY] = self._setting.argument("cpu", 1.0), self._setting.argument("memory", 1.0)
        return weight

    def domains(self, podgroups: tuple[int, ...], purpose: Purpose) -> Rows | None:
        """int64[D]: domains in which the podgroups may lie together, or None if none of them states a level.

        A required level admits domains of that level and narrower ones. The narrowest come first, so those up to a
        preferred level come before wider ones. A podgroup with running tasks keeps to domains that hold them, so that
        one with a preferred level grows outwards from where it is; the whole cluster is always such a domain.
        """
        snapshot, groups = self._base, self._base.podgroups
        rows = list(podgroups)
        required, preferred = groups.required_level[rows], groups.preferred_level[rows]
        if all_true(required == NONE) and all_true(preferred == NONE):
            return None
        topology = snapshot.topology
        chosen, tier = np.arange(len(topology)), topology.tier.astype(np.int64)
        for row, level, close in zip(rows, required.tolist(), preferred.tolist(), strict=True):
            if level != NONE:
                chosen = chosen[tier[chosen] <= topology.levels - level]
            if level != NONE or close != NONE:
                chosen = topology.holding(chosen, self._nodes_of(row))
        return chosen[np.argsort(tier[chosen], kind="stable")]

    def _nodes_of(self, podgroup: int) -> Ids:
        """int32[K]: nodes on which tasks of the podgroup run, are bound or are promised."""
        nodes: Ids = self._state.place_of(self._base.tasks_of(podgroup))
        return np.asarray(nodes[nodes != NONE])
