"""Which nodes a task may use, beside resources: selectors, affinity, taints, cordons, anti-affinity.

Semantics are those of Kubernetes. Everything is evaluated once a distinct constraint and label code or taint set, then
spread over the nodes by lookup.

Notes on the label ``kubernetes.io/hostname``: as a topology key it always works, a node that lacks it counts as a
domain of its own. Selectors and affinity see labels only, so whoever fills the columns (the intake) must give every
node that label, its value the node's name, as soon as a selector or an affinity term asks for it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Ids, Longs, Rows
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, PENDING, RUNNING
from pipeline.cluster.vocabulary import HARD_EFFECTS, AntiAffinity, Constraint, Requirement, Taint, Toleration
from pipeline.errors import StateRefused
from pipeline.plugins.protocols import Situation
from pipeline.policy import PluginSetting

HOSTNAME = "kubernetes.io/hostname"
#: What a cordoned node is tainted with; a task that tolerates it may use the node.
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Predicates:
    """The plugin: asks ``allowed`` below. Anti-affinity depends on who stays; placement asks ``exclusions`` itself."""

    def __init__(self, situation: Situation, setting: PluginSetting) -> None:
        self._snapshot = situation.snapshot

    def allowed(self, shapes: Rows) -> Bools:
        """bool[S, N]: nodes that satisfy the constraints of each shape."""
        return allowed(self._snapshot, shapes)


_LABEL_INTEGER = (-(1 << 63), (1 << 63) - 1)


def allowed(snapshot: Snapshot, shapes: Rows) -> Bools:
    """Which nodes satisfy the constraints of each shape; resources and anti-affinity are not looked at.

    Parameters
    ----------
    shapes
        int64[S]: rows of ``Snapshot.shapes``.

    Returns
    -------
    bool[S, N], a fresh array.
    """
    wanted, which = np.unique(snapshot.shapes.constraint[shapes], return_inverse=True)
    masks = np.empty((len(wanted), len(snapshot.nodes)), bool)
    for row, constraint in enumerate(wanted):
        masks[row] = _nodes_for(snapshot, snapshot.vocabulary.constraints[constraint])
    return masks[which]


def _nodes_for(snapshot: Snapshot, constraint: Constraint) -> Bools:
    nodes, vocabulary = snapshot.nodes, snapshot.vocabulary
    mask = nodes.schedulable.copy()
    if any(tolerates(toleration, CORDON) for toleration in constraint.tolerations):
        mask[:] = True
    if len(vocabulary.taint_sets) > 1:
        welcome = [_tolerated(taints, constraint.tolerations) for taints in vocabulary.taint_sets]
        mask &= np.array(welcome, bool)[nodes.taint_set]
    for requirement in constraint.node_selector:
        mask &= _satisfying(snapshot, requirement)
    if constraint.node_affinity:
        either = np.zeros(len(nodes), bool)
        for term in constraint.node_affinity:
            either |= _term(snapshot, term)
        mask &= either
    return mask


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration covers the taint; an empty key covers any key, an empty effect any effect."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def _tolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    hard = (taint for taint in taints if taint.effect in HARD_EFFECTS)
    return all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in hard)


def _term(snapshot: Snapshot, term: tuple[Requirement, ...]) -> Bools:
    """Nodes that satisfy a conjunction; an empty one matches nothing, as in Kubernetes."""
    mask = np.full(len(snapshot.nodes), bool(term))
    for requirement in term:
        mask &= _satisfying(snapshot, requirement)
    return mask


def _satisfying(snapshot: Snapshot, requirement: Requirement) -> Bools:
    """Nodes whose labels satisfy one requirement: its answer a value, looked up by the nodes' codes."""
    absent, holds = _meaning(requirement)
    vocabulary = snapshot.vocabulary
    if requirement.key not in vocabulary.label_keys:
        return np.full(len(snapshot.nodes), absent)
    key = vocabulary.label_keys.index(requirement.key)
    # The code of a missing label is -1 and so finds the last entry.
    answers = np.array([*map(holds, vocabulary.label_values[key]), absent], bool)
    result: Bools = answers[snapshot.nodes.labels[:, key]]
    return result


def _meaning(requirement: Requirement) -> tuple[bool, Callable[[str], bool]]:
    """What a requirement says of a node without the label, and of one with it by value."""
    values = frozenset(requirement.values)
    match requirement.operator:
        case "In":
            return False, lambda value: value in values
        case "NotIn":
            return True, lambda value: value not in values
        case "Exists":
            return False, lambda _: True
        case "DoesNotExist":
            return True, lambda _: False
        case "Gt" | "Lt":
            bound = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
            above = requirement.operator == "Gt"
            return False, lambda value: _beyond(_integer(value), bound, above)
    raise StateRefused(
        f"node requirement on {requirement.key!r}: expected the operator In, NotIn, Exists, DoesNotExist, Gt or Lt; "
        f"found {requirement.operator!r}"
    )


def _beyond(value: int | None, bound: int | None, above: bool) -> bool:
    if value is None or bound is None:
        return False
    return value > bound if above else value < bound


def _integer(text: str) -> int | None:
    """The 64-bit decimal integer that ``text`` is, else None (what is no number satisfies neither Gt nor Lt)."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    value = int(text)
    return value if _LABEL_INTEGER[0] <= value <= _LABEL_INTEGER[1] else None


# -- anti-affinity ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exclusions:
    """What anti-affinity leaves for some kinds of tasks; a kind is a constraint with a set of task labels.

    Attributes
    ----------
    excluded: bool[M, N]
        Nodes that tasks which stay where they are deny to each kind.
    conflict: int64[M, M]
        Bit ``k`` is set where two tasks of these kinds must not share a domain of ``keys[k]``; symmetric.
    keys
        Topology keys that conflicts of the kinds among themselves are about.
    domains: int64[len(keys), N]
        The node's domain by that key, NONE outside any.
    """

    excluded: Bools
    conflict: Longs
    keys: tuple[str, ...]
    domains: Longs


def repels(snapshot: Snapshot) -> bool:
    """Whether any task has an anti-affinity term at all; if not, nobody need ask for ``exclusions``."""
    return any(constraint.anti_affinity for constraint in snapshot.vocabulary.constraints)


def exclusions(snapshot: Snapshot, constraints: Ids, label_sets: Ids, leaving: Rows) -> Exclusions:
    """What anti-affinity denies to tasks of some kinds, in both directions and within one namespace.

    Tasks that are Bound, Running or promised a node repel and are repelled, but for ``leaving``. Terminating ones do
    not: their room is counted as coming free as well.

    Parameters
    ----------
    constraints, label_sets
        int32[M]: rows of ``Vocabulary.constraints`` and ``label_sets``, one pair a kind.
    leaving
        int64[V]: task rows that no longer count.
    """
    table, vocabulary = snapshot.vocabulary.constraints, snapshot.vocabulary
    kinds = [(table[c], vocabulary.label_sets[a]) for c, a in zip(constraints, label_sets, strict=True)]
    return Exclusions(_excluded(snapshot, kinds, leaving), *_conflicts(snapshot, kinds))


_Kind = tuple[Constraint, tuple[tuple[str, str], ...]]


def _matches(term: AntiAffinity, labels: tuple[tuple[str, str], ...]) -> bool:
    return set(term.match_labels) <= set(labels)


def domains_by(snapshot: Snapshot, key: str) -> Longs:
    """int64[N]: the domain of each node by a label key; nodes without the label are in none, or alone by hostname."""
    keys, nodes = snapshot.vocabulary.label_keys, len(snapshot.nodes)
    codes = np.full(nodes, NONE, np.int64)
    if key in keys:
        codes = snapshot.nodes.labels[:, keys.index(key)].astype(np.int64)
    if key == HOSTNAME:
        own = codes.max(initial=NONE) + 1 + np.arange(nodes)
        codes = np.where(codes == NONE, own, codes)
    return codes


def _excluded(snapshot: Snapshot, kinds: list[_Kind], leaving: Rows) -> Bools:
    tasks, vocabulary = snapshot.tasks, snapshot.vocabulary
    place = np.where(tasks.status == PENDING, tasks.nominated, tasks.node)
    stays = np.isin(tasks.status, (PENDING, BOUND, RUNNING)) & (place != NONE)
    stays[leaving] = False
    rows = np.flatnonzero(stays)
    namespace = snapshot.podgroups.namespace[tasks.podgroup[rows]]
    constraint, labels = snapshot.shapes.constraint[tasks.shape[rows]], tasks.label_set[rows]
    excluded = np.zeros((len(kinds), len(snapshot.nodes)), bool)

    def exclude(kind: int, repelling: Bools, key: str) -> None:
        domains = domains_by(snapshot, key)
        taken = np.unique(domains[place[rows[repelling & near]]])
        excluded[kind] |= np.isin(domains, taken[taken != NONE])

    for kind, (own, carried) in enumerate(kinds):
        near = namespace == own.namespace
        for term in own.anti_affinity:
            met = np.array([_matches(term, label_set) for label_set in vocabulary.label_sets])
            exclude(kind, met[labels], term.topology_key)
        for other, theirs in enumerate(vocabulary.constraints):
            for term in theirs.anti_affinity:
                if theirs.namespace == own.namespace and _matches(term, carried):
                    exclude(kind, constraint == other, term.topology_key)
    return excluded


def _conflicts(snapshot: Snapshot, kinds: list[_Kind]) -> tuple[Longs, tuple[str, ...], Longs]:
    pairs = [
        (one, other, term.topology_key)
        for one, (own, _) in enumerate(kinds)
        for other, (theirs, carried) in enumerate(kinds)
        for term in own.anti_affinity
        if theirs.namespace == own.namespace and _matches(term, carried)
    ]
    keys = tuple(sorted({key for _, _, key in pairs}))
    conflict = np.zeros((len(kinds), len(kinds)), np.int64)
    for one, other, key in pairs:
        conflict[one, other] |= 1 << keys.index(key)
        conflict[other, one] |= 1 << keys.index(key)
    domains = np.array([domains_by(snapshot, key) for key in keys], np.int64).reshape(len(keys), len(snapshot.nodes))
    return conflict, keys, domains
