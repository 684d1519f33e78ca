"""Anti-affinity: which nodes running tasks deny to others, and which tasks must not share a domain.

The label ``kubernetes.io/hostname`` always works as a topology key: a node without it is a domain of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Ids, Longs, Rows
from pipeline.cluster.counted.totals import promised
from pipeline.cluster.rules.requirements import meaning
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import BOUND, RUNNING
from pipeline.cluster.vocabulary import ALL_NAMESPACES, HOSTNAME, AntiAffinity, Constraint, Requirement, Vocabulary


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
        Topology keys of the conflicts between the kinds.
    domains: int64[len(keys), N]
        The node's domain by that key, NONE without one.
    """

    excluded: Bools
    conflict: Longs
    keys: tuple[str, ...]
    domains: Longs


def concerns(snapshot: Snapshot, rows: Rows) -> bool:
    """Whether any of the tasks ``rows`` repels something, or is selected by a term of some task."""
    if not snapshot.once(_stated):
        return False
    constraint = snapshot.shapes.constraint[snapshot.tasks.shape[rows]]
    kinds = np.unique(np.stack([constraint, snapshot.tasks.label_set[rows]], axis=1), axis=0)
    return bool(concerned(snapshot, kinds[:, 0], kinds[:, 1]).any())


def _stated(snapshot: Snapshot) -> tuple[tuple[int, AntiAffinity], ...]:
    """All anti-affinity terms that tasks have, each with its namespace."""
    constraints = snapshot.vocabulary.constraints
    return tuple(dict.fromkeys((one.namespace, term) for one in constraints for term in one.anti_affinity))


def states_terms(snapshot: Snapshot) -> bool:
    """Whether any task states an anti-affinity term."""
    return bool(snapshot.once(_stated))


def concerned(snapshot: Snapshot, constraints: Ids, label_sets: Ids) -> Bools:
    """bool[M]: kinds that repel something, or that some task's term selects; the others need not be looked at.

    Parameters
    ----------
    constraints, label_sets: int32[M]
        As in ``exclusions``.
    """
    stated = snapshot.once(_stated)
    if not stated:
        return np.zeros(len(constraints), bool)
    table, vocabulary = snapshot.vocabulary.constraints, snapshot.vocabulary
    return np.array([
        bool(table[c].anti_affinity)
        or any(_means(vocabulary, space, term, (table[c], vocabulary.label_sets[a])) for space, term in stated)
        for c, a in zip(constraints, label_sets, strict=True)
    ], bool)  # fmt: skip


def exclusions(snapshot: Snapshot, constraints: Ids, label_sets: Ids, leaving: Rows) -> Exclusions:
    """What anti-affinity denies to tasks of some kinds, in both directions.

    Tasks that are Bound, Running or promised a node repel and are repelled, except ``leaving``. Terminating tasks do
    not: their room counts as coming free as well.

    Parameters
    ----------
    constraints, label_sets: int32[M]
        Rows of ``Vocabulary.constraints`` and ``label_sets``, one pair for each kind.
    leaving: int64[V]
        Task rows that no longer count.
    """
    table, vocabulary = snapshot.vocabulary.constraints, snapshot.vocabulary
    kinds = [(table[c], vocabulary.label_sets[a]) for c, a in zip(constraints, label_sets, strict=True)]
    return Exclusions(_excluded(snapshot, kinds, leaving), *_conflicts(snapshot, kinds))


_Kind = tuple[Constraint, tuple[tuple[str, str], ...]]


def _means(vocabulary: Vocabulary, space: int, term: AntiAffinity, kind: _Kind) -> bool:
    """Whether a term of a task in namespace ``space`` means tasks of a kind."""
    return _reaches(vocabulary, space, term, kind[0].namespace) and _matches(term, kind[1])


def _reaches(vocabulary: Vocabulary, space: int, term: AntiAffinity, other: int) -> bool:
    if not term.namespaces:
        return space == other
    return ALL_NAMESPACES in term.namespaces or vocabulary.namespaces[other] in term.namespaces


def _matches(term: AntiAffinity, labels: tuple[tuple[str, str], ...]) -> bool:
    return set(term.match_labels) <= set(labels) and all(_holds(each, labels) for each in term.match_expressions)


def _holds(requirement: Requirement, labels: tuple[tuple[str, str], ...]) -> bool:
    without, holds = meaning(requirement)
    return next((holds(value) for key, value in labels if key == requirement.key), without)


def domains_by(snapshot: Snapshot, key: str) -> Longs:
    """int64[N]: the domain of each node by a label key, NONE without the label; by hostname such a node is alone."""
    keys, nodes = snapshot.vocabulary.label_keys, len(snapshot.nodes)
    codes = np.full(nodes, NONE, np.int64)
    if key in keys:
        codes = snapshot.nodes.labels[:, keys.index(key)].astype(np.int64)
    if key == HOSTNAME:
        own = codes.max(initial=NONE) + 1 + np.arange(nodes)
        codes = np.where(codes == NONE, own, codes)
    return codes


def _excluded(snapshot: Snapshot, kinds: list[_Kind], leaving: Rows) -> Bools:
    place = _place_of_staying(snapshot)
    place[leaving] = NONE
    rows = np.flatnonzero(place != NONE)
    excluded = np.zeros((len(kinds), len(snapshot.nodes)), bool)
    for kind, one in enumerate(kinds):
        for repelling, key in _repelling(snapshot, one, rows):
            domains = domains_by(snapshot, key)
            taken = np.unique(domains[place[rows[repelling]]])
            excluded[kind] |= np.isin(domains, taken[taken != NONE])
    return excluded


def _place_of_staying(snapshot: Snapshot) -> Ids:
    """int32[T]: the node of each task that repels there: it runs, is bound or is promised the node; else NONE."""
    tasks = snapshot.tasks
    runs = (tasks.status == BOUND) | (tasks.status == RUNNING)
    return np.where(runs, tasks.node, np.where(promised(tasks), tasks.nominated, np.int32(NONE)))


def _repelling(snapshot: Snapshot, kind: _Kind, rows: Rows) -> Iterator[tuple[Bools, str]]:
    """Term by term, which of the tasks ``rows`` the kind repels or is repelled by (bool[K]), and the term's key."""
    tasks, vocabulary, (own, carried) = snapshot.tasks, snapshot.vocabulary, kind
    spaces, space = np.unique(snapshot.podgroups.namespace[tasks.podgroup[rows]], return_inverse=True)
    constraint, labels = snapshot.shapes.constraint[tasks.shape[rows]], tasks.label_set[rows]
    for term in own.anti_affinity:
        met = np.array([_matches(term, label_set) for label_set in vocabulary.label_sets], bool)
        there = np.array([_reaches(vocabulary, own.namespace, term, int(other)) for other in spaces], bool)
        yield met[labels] & there[space], term.topology_key
    for other, theirs in enumerate(vocabulary.constraints):
        for term in theirs.anti_affinity:
            if _means(vocabulary, theirs.namespace, term, (own, carried)):
                yield constraint == other, term.topology_key


class KindRepulsion(NamedTuple):
    """By term, which tasks keep a kind away by anti-affinity, in either direction.

    Attributes
    ----------
    repels: uint8[A, T]
        Whether a task does so from the domain of its node, wherever that is.
    domain: int64[A, N]
        Domains of the nodes, NONE without one.
    repelled: int64[N]
        How often tasks that run, are bound or are promised nodes keep it away from each node.
    """

    repels: Bytes
    domain: Longs
    repelled: Longs


def repulsion_of_kind(snapshot: Snapshot, task: int) -> KindRepulsion:
    """What keeps tasks of the kind of ``task`` away; no terms if nothing does."""
    tasks, vocabulary, nodes = snapshot.tasks, snapshot.vocabulary, len(snapshot.nodes)
    constraint, labels = int(snapshot.shapes.constraint[tasks.shape[task]]), int(tasks.label_set[task])
    terms = list[tuple[Bools, str]]()
    if concerns(snapshot, np.array([task])):
        kind = vocabulary.constraints[constraint], vocabulary.label_sets[labels]
        terms = list(_repelling(snapshot, kind, np.arange(len(tasks))))
    repels = np.array([met for met, _ in terms], np.uint8).reshape(len(terms), len(tasks))
    domain = np.array([domains_by(snapshot, key) for _, key in terms], np.int64).reshape(len(terms), nodes)
    place, repelled = _place_of_staying(snapshot), np.zeros(nodes, np.int64)
    for met, domains in zip(repels, domain, strict=True):
        taken = domains[place[(met > 0) & (place != NONE)]]
        often = np.bincount(taken[taken != NONE], minlength=int(domains.max(initial=0)) + 1)
        repelled += np.where(domains == NONE, 0, often[domains])
    return KindRepulsion(repels, domain, repelled)


def denying(snapshot: Snapshot, constraints: Ids, label_sets: Ids, rows: Rows) -> Bools:
    """bool[K]: which of the tasks ``rows`` deny nodes to some kind as long as they stay; kinds as in ``exclusions``."""
    table, vocabulary = snapshot.vocabulary.constraints, snapshot.vocabulary
    result = np.zeros(len(rows), bool)
    for c, a in zip(constraints, label_sets, strict=True):
        for repelling, _ in _repelling(snapshot, (table[c], vocabulary.label_sets[a]), rows):
            result |= repelling
    return result


def _conflicts(snapshot: Snapshot, kinds: list[_Kind]) -> tuple[Longs, tuple[str, ...], Longs]:
    pairs = [
        (one, other, term.topology_key)
        for one, (own, _) in enumerate(kinds)
        for other, (theirs, carried) in enumerate(kinds)
        for term in own.anti_affinity
        if _means(snapshot.vocabulary, own.namespace, term, (theirs, carried))
    ]
    keys = tuple(sorted({key for _, _, key in pairs}))
    conflict = np.zeros((len(kinds), len(kinds)), np.int64)
    for one, other, key in pairs:
        conflict[one, other] |= 1 << keys.index(key)
        conflict[other, one] |= 1 << keys.index(key)
    domains = np.array([domains_by(snapshot, key) for key in keys], np.int64).reshape(len(keys), len(snapshot.nodes))
    return conflict, keys, domains
