"""The network: Koordinator's ClusterNetworkTopology, Volcano's HyperNodes, the Topologies of Kueue and KAI.

A cluster file has one topology. Those of Kueue and KAI become one if their domains fit into each other, as those of
different nodes do. Of several that do not, the one that podgroups ask for most is taken; on a tie, the first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.imports.fields import Fields
from actors.imports.kubernetes.kai import parts_of
from actors.imports.kubernetes.network.hypernodes import HyperNode, written_out
from actors.imports.kubernetes.network.possible import Kind, PossibleTopology, joined
from pipeline.cluster.vocabulary import HOSTNAME

NODE_LAYER, CLUSTER_LAYER = "NodeTopologyLayer", "ClusterTopologyLayer"


@dataclass(frozen=True, slots=True)
class LevelRequest:
    """The levels that a podgroup or subgroup asks for, in the words of its scheduler.

    Attributes
    ----------
    where
        Path of the request in its object.
    required, preferred
        Name of a level, or number of a tier; None if it asks for none.
    into
        The document that gets the answer under ``topology``.
    multiple
        In each domain of the level a multiple of this number of tasks is placed; 0: any number.
    """

    kind: Kind
    about: Fields
    where: tuple[int | str, ...]
    required: str | int | None
    preferred: str | int | None
    into: dict[str, Any]
    multiple: int = 0


@dataclass(slots=True)
class Topologies:
    """The topologies that were read, and the levels that podgroups ask for."""

    found: list[PossibleTopology] = field(default_factory=list)
    hypernodes: list[HyperNode] = field(default_factory=list)
    asked: list[LevelRequest] = field(default_factory=list)

    def layers(self, about: Fields) -> None:
        """``ClusterNetworkTopology``."""
        self.found.append(PossibleTopology("layer", about, layers_of(about), NODE_LAYER))

    def levels(self, about: Fields) -> None:
        """``Topology`` of Kueue or KAI: node labels, the widest first."""
        parts = parts_of(about, "Topology")
        wide = tuple((key, (key,)) for key in parts.topology["levels"] if key != HOSTNAME)
        self.found.append(PossibleTopology("key", about, wide, HOSTNAME, aliases=parts.aliases))

    def hypernode(self, about: Fields) -> None:
        """``HyperNode``."""
        spec = about.inside("spec")
        tier = spec.get("tier")
        if isinstance(tier, bool) or re.fullmatch(r"[0-9]{1,6}", str(tier)) is None:
            spec.refuse("tier", f"expected a whole number, found {tier!r}")
        members = tuple(spec.items("members"))
        name = about.inside("metadata").text("name")
        self.hypernodes.append(HyperNode(about, name, int(str(tier)), spec.text("tierName"), members))

    def settle(self, nodes: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
        """Choose the topology, and write the names of their levels into the podgroups that ask for some.

        Parameters
        ----------
        nodes
            Node documents; they get the label of their own name if it is asked for as a level.

        Returns
        -------
        The ``topology`` of the cluster file; None if there is none.

        Raises
        ------
        FieldRefused
            If a level is asked for that the topology does not have.
        """
        by_label = [each for each in self.found if each.kind == "key"]
        candidates = [*(each for each in self.found if each.kind != "key"), *joined(by_label, nodes)]
        if self.hypernodes:
            candidates.append(_of_hypernodes(tuple(self.hypernodes)))
        if not any(each.kind == "key" for each in candidates):
            candidates += self._by_node_labels(nodes)
        candidates.sort(key=lambda each: -sum(_answers(each, asked) for asked in self.asked))
        for other in candidates[1:]:
            other.about.leave_out((), "a cluster file has one topology, and this one is asked for less")
        chosen = candidates[0] if candidates else None
        leaf = False
        for asked in self.asked:
            leaf |= _answer(chosen, asked, candidates)
        if chosen is None:
            return None
        for asked in self.asked:
            _without_a_list(chosen, asked.into.get("topology", {}))
        return topology_document(chosen, nodes, leaf)

    def _by_node_labels(self, nodes: Sequence[dict[str, Any]]) -> list[PossibleTopology]:
        """A topology of the node labels that are asked for as levels; a level with fewer domains is wider."""
        keys = {
            str(k)
            for a in self.asked
            if a.kind == "key"
            for k in (a.required, a.preferred)
            if k not in (None, HOSTNAME)
        }
        values = {key: {node["labels"][key] for node in nodes if key in node.get("labels", {})} for key in keys}
        borne = sorted((key for key in keys if values[key]), key=lambda key: (len(values[key]), key))
        about = next((asked.about for asked in self.asked if asked.kind == "key"), None)
        if about is None:
            return []
        return [PossibleTopology("key", about, tuple((key, (key,)) for key in borne), HOSTNAME)]


def layers_of(about: Fields) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The layers of a ClusterNetworkTopology, widest first; the order of its list does not matter.

    Raises
    ------
    FieldRefused
        If they do not form one chain down to the node.
    """
    spec = about.inside("spec")
    parents: dict[str, str] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for each in spec.items("networkTopologySpec"):
        layer = each.text("topologyLayer")
        if layer in parents or not layer:
            each.refuse("topologyLayer", f"expected each layer once, by name, found {layer!r}")
        parents[layer] = each.text("parentTopologyLayer")
        keys[layer] = tuple(each.texts("labelKey"))
        if layer != NODE_LAYER and not keys[layer]:
            each.refuse("labelKey", "expected the node labels that say the domain, found none")
    if NODE_LAYER not in parents:
        spec.refuse("networkTopologySpec", f"expected a layer {NODE_LAYER}, found {', '.join(parents) or 'none'}")
    chain: list[str] = []
    layer = parents[NODE_LAYER]
    while layer and layer != CLUSTER_LAYER:
        if layer not in parents or layer in chain:
            spec.refuse("networkTopologySpec", f"expected a chain of layers up from the node, found {layer!r}")
        chain.append(layer)
        layer = parents[layer]
    if len(chain) + 1 != len(parents):
        outside = sorted(set(parents) - {NODE_LAYER, *chain})
        spec.refuse("networkTopologySpec", f"expected one chain of layers, found {', '.join(outside)} outside it")
    return tuple((layer, keys[layer]) for layer in reversed(chain))


def _of_hypernodes(hypernodes: tuple[HyperNode, ...]) -> PossibleTopology:
    tiers = sorted({each.tier for each in hypernodes}, reverse=True)
    return PossibleTopology("tier", hypernodes[0].about, tuple((f"tier-{tier}", ()) for tier in tiers), "", hypernodes)


def _answers(candidate: PossibleTopology, asked: LevelRequest) -> bool:
    if candidate.kind != asked.kind:
        return False
    return asked.kind == "tier" or any(
        candidate.has(candidate.aliases.get(str(level), level)) for level in (asked.required, asked.preferred) if level
    )


def _answer(chosen: PossibleTopology | None, asked: LevelRequest, candidates: Sequence[PossibleTopology]) -> bool:
    """Write the levels of a request by their names in the chosen topology; whether one of them is single nodes."""
    if chosen is None or chosen.kind != asked.kind:
        known = any(each.kind == asked.kind for each in candidates)
        told = "not the one of the cluster file" if known else "not among the manifests"
        asked.about.leave_out(asked.where, f"the topology that it asks for is {told}")
        return False
    leaf = False
    for key, level in (("required", asked.required), ("preferred", asked.preferred)):
        if level is None:
            continue
        name = _tier(chosen, asked, level) if asked.kind == "tier" else chosen.aliases.get(str(level), str(level))
        if name is None:
            continue
        if not chosen.has(name) and any(each.has(name) for each in candidates):
            asked.about.leave_out(
                asked.where, f"the topology with the level {level!r} is not the one of the cluster file"
            )
            continue
        if not chosen.has(name):
            known_ones = ", ".join([*(one for one, _ in chosen.levels), chosen.leaf])
            asked.about.refuse(asked.where, f"expected one of {known_ones}, found {level!r}")
        leaf |= name == chosen.leaf
        # Of several layers the narrowest counts; the wider ones are tried when it cannot be met.
        levels = asked.into.setdefault("topology", {})
        levels[key] = max(name, levels.get(key, name), key=chosen.depth)
        if asked.kind == "layer" and key == "preferred" and name not in levels.setdefault("layers", []):
            levels["layers"] = sorted([*levels["layers"], name], key=chosen.depth)
        if asked.multiple > 1:
            levels.setdefault("multiples", {})[name] = asked.multiple
    return leaf


def _without_a_list(chosen: PossibleTopology, levels: dict[str, Any]) -> None:
    """Drop the list of preferred layers if it has all layers upwards, which is the meaning without a list."""
    listed = [chosen.depth(name) for name in levels.get("layers", ())]
    top = chosen.depth(levels["required"]) + 1 if "required" in levels else 0
    if set(listed) >= set(range(top, max(listed, default=-1) + 1)):
        levels.pop("layers", None)


def _tier(chosen: PossibleTopology, asked: LevelRequest, level: str | int) -> str | None:
    """The level of the widest tier that is allowed; -1 asks for the narrowest one. None: the whole cluster will do."""
    tiers = {each.tier_name: each.tier for each in chosen.hypernodes if each.tier_name}
    numbers = sorted({each.tier for each in chosen.hypernodes})
    if isinstance(level, str):
        if level not in tiers:
            asked.about.refuse(
                asked.where, f"expected a tier, one of {', '.join(sorted(tiers)) or 'none'}, found {level!r}"
            )
        level = tiers[level]
    allowed = [tier for tier in numbers if tier <= level] if level >= 0 else numbers[:1]
    if not allowed:
        asked.about.refuse(asked.where, f"expected a tier of at least {numbers[0]}, found {level}")
    if level > numbers[-1]:
        return None  # wider than all: the whole cluster will do
    return f"tier-{max(allowed)}"


def topology_document(chosen: PossibleTopology, nodes: Sequence[dict[str, Any]], leaf: bool) -> dict[str, Any]:
    """A topology as a cluster file writes it; nodes get the labels that it needs."""
    if chosen.kind == "tier":
        return written_out(chosen.hypernodes, nodes)
    labels: dict[str, str] = {}
    for depth, (level, keys) in enumerate(chosen.levels):
        domain = [_domain(chosen, depth, node) for node in nodes]
        stated = [node.get("labels", {}).get(keys[0], "") for node in nodes]
        labels[level] = keys[0] if len(keys) == 1 and domain == stated else f"{level}/first-of-{len(keys)}"
        for node, name in zip(nodes, domain, strict=True) if labels[level] not in keys else ():
            node.setdefault("labels", {}).update({labels[level]: name} if name else {})
    if leaf:
        labels[chosen.leaf] = HOSTNAME
        for node in nodes:
            node.setdefault("labels", {}).setdefault(HOSTNAME, node["name"])
    return {"levels": list(labels), "labels": labels}


def _domain(chosen: PossibleTopology, depth: int, node: Mapping[str, Any]) -> str:
    """The domain of a node at a level, "" for none.

    As in Koordinator, a node that lacks only the layer right above it is a domain of its own there.
    """
    found = [first_of(node.get("labels", {}), keys) for _, keys in chosen.levels[: depth + 1]]
    alone = chosen.kind == "layer" and depth == len(chosen.levels) - 1 and all(found[:-1])
    return found[-1] or (str(node["name"]) if alone else "")


def first_of(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    """The first value, in the order of ``keys``, that is not empty; "" if there is none."""
    return next((labels[key] for key in keys if labels.get(key)), "")
