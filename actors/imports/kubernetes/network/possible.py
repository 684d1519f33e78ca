"""A topology that a cluster file could have, and several as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from actors.imports.fields import Fields
from actors.imports.kubernetes.network.hypernodes import HyperNode

Kind = Literal["layer", "tier", "key"]
Domain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PossibleTopology:
    """A topology that the cluster file could have.

    Attributes
    ----------
    levels
        Widest first: the name, and node labels; the first label that a node bears names its domain.
    leaf
        Name of the level of single nodes.
    aliases
        Other names of levels.
    """

    kind: Kind
    about: Fields
    levels: tuple[tuple[str, tuple[str, ...]], ...]
    leaf: str
    hypernodes: tuple[HyperNode, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name among the manifests."""
        return self.about.inside("metadata").text("name")

    def depth(self, level: str) -> int:
        """Depth of a level, 0 for the widest; the level of single nodes is the deepest."""
        names = [name for name, _ in self.levels]
        return names.index(level) if level in names else len(names)

    def has(self, level: object) -> bool:
        """Whether it has a level of this name, single nodes included."""
        return level == self.leaf or any(level == name for name, _ in self.levels)


def joined(found: Sequence[PossibleTopology], nodes: Sequence[Mapping[str, Any]]) -> list[PossibleTopology]:
    """Topologies by node labels as one, as far as their domains stay what they are.

    Parameters
    ----------
    found
        Topologies of the kind ``key``; each is joined to the first one with which it can be one.
    nodes
        Node documents.
    """
    kept: list[PossibleTopology] = []
    for one in found:
        for at, other in enumerate(kept):
            both = _together(other, one, nodes)
            if both is not None:
                kept[at] = both
                break
        else:
            kept.append(one)
    return kept


def _together(
    first: PossibleTopology, second: PossibleTopology, nodes: Sequence[Mapping[str, Any]]
) -> PossibleTopology | None:
    """Both topologies as one; None if a level of one would cut the domains of the other."""
    chains = [[name for name, _ in each.levels] for each in (first, second)]
    order = _widest_first(chains, nodes)
    if order is None or not all(_fits(chain, order, nodes) for chain in chains):
        return None
    levels = tuple((name, (name,)) for name in order)
    return replace(first, levels=levels, aliases={**second.aliases, **first.aliases})


def _widest_first(chains: Sequence[Sequence[str]], nodes: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The levels of all chains in one order that keeps that of each; None if there is none.

    Where the chains leave it open, a level with fewer domains is wider.
    """
    above: dict[str, set[str]] = {}
    domains: dict[str, int] = {}
    for chain in chains:
        for at, name in enumerate(chain):
            above.setdefault(name, set()).update(chain[:at])
            domains[name] = len({_path(node, chain[: at + 1]) for node in nodes})
    order: list[str] = []
    while len(order) < len(above):
        ready = [name for name in above if name not in order and above[name] <= set(order)]
        if not ready:
            return None
        order.append(min(ready, key=lambda name: (domains[name], name)))
    return order


def _fits(chain: Sequence[str], order: Sequence[str], nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the domains of a chain are the same where more levels stand between its own."""
    for at, name in enumerate(chain):
        inside = [node for node in nodes if name in node.get("labels", {})]
        own = [_path(node, chain[: at + 1]) for node in inside]
        both = [_path(node, order[: order.index(name) + 1]) for node in inside]
        if not len(set(own)) == len(set(both)) == len(set(zip(own, both, strict=True))):
            return False
    return True


def _path(node: Mapping[str, Any], keys: Sequence[str]) -> Domain:
    """The domain of a node: the values of the labels that it bears, with their keys."""
    labels = node.get("labels", {})
    return tuple(f"{key}={labels[key]}" for key in keys if key in labels)
