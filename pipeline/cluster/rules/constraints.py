"""Which nodes a task may use, resources aside: selectors, affinity, taints and cordons.

Semantics are those of Kubernetes. Each distinct constraint is evaluated once for each label value and taint set; nodes
look the answer up.

Selectors and affinity see labels only. So the code that fills the columns gives every node the label
``kubernetes.io/hostname``, with the node's name as value, as soon as a selector or an affinity term asks for it.
"""

import numpy as np

from pipeline.cluster.arrays import Bools, Rows
from pipeline.cluster.orders import unique_inverse
from pipeline.cluster.rules.requirements import meaning
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.vocabulary import HARD_EFFECTS, Constraint, Requirement, Taint, Toleration, Vocabulary

#: The taint of a cordoned node; a task that tolerates it may use the node.
CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
#: At most this many constraints are known with their nodes.
_KEPT = 64


def allowed(snapshot: Snapshot, shapes: Rows) -> Bools:
    """Which nodes satisfy the constraints of each shape, resources and anti-affinity aside.

    Parameters
    ----------
    shapes: int64[S]
        Rows of ``Snapshot.shapes``.

    Returns
    -------
    bool[S, N], a fresh array.
    """
    wanted, which = unique_inverse(snapshot.shapes.constraint[shapes])
    masks = np.empty((len(wanted), len(snapshot.nodes)), bool)
    for row, constraint in enumerate(wanted.tolist()):
        masks[row] = _known(snapshot, constraint)[1]
    return masks[which]


def _known(snapshot: Snapshot, constraint: int) -> tuple[Vocabulary, Bools]:
    """The vocabulary with a constraint (by row), and the nodes for it; worked out once while nodes stay as they are."""
    known = snapshot.nodes.answers(_known)
    if constraint not in known or known[constraint][0] is not snapshot.vocabulary:
        if len(known) >= _KEPT:
            known.clear()
        known[constraint] = snapshot.vocabulary, _nodes_for(snapshot, snapshot.vocabulary.constraints[constraint])
    return known[constraint]


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
    """Nodes whose labels satisfy one requirement; each label value is evaluated once and looked up by its code."""
    absent, holds = meaning(requirement)
    vocabulary = snapshot.vocabulary
    if requirement.key not in vocabulary.label_keys:
        return np.full(len(snapshot.nodes), absent)
    key = vocabulary.label_keys.index(requirement.key)
    # The code of a missing label is -1 and so finds the last entry.
    answers = np.array([*map(holds, vocabulary.label_values[key]), absent], bool)
    result: Bools = answers[snapshot.nodes.labels[:, key]]
    return result
