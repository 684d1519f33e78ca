"""Anti-affinity: which nodes running tasks deny to others, and which tasks must not share a domain.

The label ``kubernetes.io/hostname`` always works as a topology key: a node without it is a domain of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipeline.cluster.arrays import NONE, Bools, Bytes, Ids, Longs, Rows, distinct, is_among, joined, mask_of, sealed
from pipeline.cluster.rules.requirements import applies_in, selects
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import PENDING, TERMINATING
from pipeline.cluster.vocabulary import HOSTNAME, AntiAffinity, Constraint, Vocabulary
from pipeline.keeping import cached_property


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
    if not snapshot.vocabulary.once(_stated):
        return False
    constraint, labels = snapshot.shapes.constraint[snapshot.tasks.shape[rows]], len(snapshot.vocabulary.label_sets)
    kinds = distinct(constraint.astype(np.int64) * labels + snapshot.tasks.label_set[rows])
    return bool(concerned(snapshot, *np.divmod(kinds, labels)).any())


def _stated(vocabulary: Vocabulary) -> tuple[tuple[int, AntiAffinity], ...]:
    """All anti-affinity terms that tasks have, each with its namespace."""
    return tuple(dict.fromkeys((one.namespace, term) for one in vocabulary.constraints for term in one.anti_affinity))


def states_terms(snapshot: Snapshot) -> bool:
    """Whether any task states an anti-affinity term."""
    return bool(snapshot.vocabulary.once(_stated))


def concerned(snapshot: Snapshot, constraints: Ids | Rows, label_sets: Ids | Rows) -> Bools:
    """bool[M]: kinds that repel something, or that some task's term selects; the others need not be looked at.

    Parameters
    ----------
    constraints, label_sets: int32[M] or int64[M]
        As in ``exclusions``.
    """
    stated = snapshot.vocabulary.once(_stated)
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
    not: their room counts as coming free as well, so a node is promised beside them. Starting there has to wait, see
    ``not_yet``.

    Parameters
    ----------
    constraints, label_sets: int32[M]
        Rows of ``Vocabulary.constraints`` and ``label_sets``, one pair for each kind.
    leaving: int64[V]
        Task rows that no longer count.
    """
    denied = denials(snapshot, constraints, label_sets, 0, len(snapshot.nodes)).after(leaving)
    return Exclusions(denied, *_conflicts(snapshot, _kinds(constraints, label_sets)))


def not_yet(snapshot: Snapshot, constraints: Ids, label_sets: Ids, leaving: Rows) -> Bools:
    """bool[M, N]: nodes where tasks that are still ending keep each kind from starting, in both directions.

    Parameters
    ----------
    constraints, label_sets: int32[M]
        As in ``exclusions``.
    leaving: int64[V]
        Tasks that a decision evicts: they will be ending, too.
    """
    tasks, result = snapshot.tasks, np.zeros((len(constraints), len(snapshot.nodes)), bool)
    for kind, one in enumerate(_kinds(constraints, label_sets)):
        for rows, key in _repelling(snapshot, one):
            ends = (tasks.status[rows] == TERMINATING) | is_among(rows, leaving)
            ending = rows[ends & (tasks.node[rows] != NONE)]
            if len(ending):
                domains = domains_by(snapshot, key)
                taken = domains[tasks.node[ending]]
                result[kind] |= is_among(domains, taken[taken != NONE])
    return result


@dataclass(frozen=True)
class Denials:
    """What tasks that stay where they are deny to some kinds of tasks on a slice of nodes, asked as others leave."""

    nodes: int
    kinds: int
    _terms: tuple["_Denial", ...]

    def after(self, leaving: Rows) -> Bools:
        """bool[M, n]: nodes that are denied to each kind once ``leaving`` int64[V] have gone, see ``exclusions``."""
        gone = self._denying[is_among(self._denying, leaving)]
        if (asked := gone.tobytes()) not in self._known:
            self._known[asked] = self._without(gone)
        return self._known[asked]

    def _without(self, gone: Rows) -> Bools:
        denied = np.zeros((self.kinds, self.nodes), bool)
        for kind, rows, taken, domains in self._terms:
            hit = np.zeros(int(domains.max(initial=NONE)) + 2, bool)  # the last one stands for no domain
            hit[taken[~is_among(rows, gone)]] = True
            denied[kind] |= hit[domains]
        return sealed(denied)

    @cached_property
    def _denying(self) -> Rows:
        return distinct(joined(one.rows for one in self._terms))

    @cached_property
    def _known(self) -> dict[bytes, Bools]:
        return {}


class _Denial(NamedTuple):
    """One term: the kind that is kept away, tasks that do so (int64[K]), their domains, and those of the nodes."""

    kind: int
    rows: Rows
    taken: Longs
    domains: Longs


def denials(snapshot: Snapshot, constraints: Ids, label_sets: Ids, start: int, stop: int) -> Denials:
    """What is denied to some kinds on the nodes ``start:stop``; kinds as in ``exclusions``."""
    found, kinds = list[_Denial](), _kinds(constraints, label_sets)
    for kind, one in enumerate(kinds):
        for rows, key in _repelling(snapshot, one):
            domains, place = domains_by(snapshot, key), _place_of(snapshot, rows)
            taken, here = np.append(domains, NONE)[place], domains[start:stop]  # none of NONE, also without nodes
            there = mask_of(here, int(domains.max(initial=NONE)) + 2)
            there[NONE] = False
            near = there[taken]
            found.append(_Denial(kind, rows[near], taken[near], here))
    return Denials(stop - start, len(kinds), tuple(found))


#: A row of ``Vocabulary.constraints`` and one of ``label_sets``; and what these say.
_Kind = tuple[int, int]
_Said = tuple[Constraint, tuple[tuple[str, str], ...]]


def _kinds(constraints: Ids, label_sets: Ids) -> list[_Kind]:
    return list(zip(np.asarray(constraints).tolist(), np.asarray(label_sets).tolist(), strict=True))


def _said(snapshot: Snapshot, kind: _Kind) -> _Said:
    return snapshot.vocabulary.constraints[kind[0]], snapshot.vocabulary.label_sets[kind[1]]


def _means(vocabulary: Vocabulary, space: int, term: AntiAffinity, kind: _Said) -> bool:
    """Whether a term of a task in namespace ``space`` matches tasks of a kind."""
    return applies_in(vocabulary, space, term, kind[0].namespace) and selects(term, kind[1])


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


def _place_of(snapshot: Snapshot, rows: Rows) -> Ids:
    """int32[K]: the node of each task that repels there: it runs, is bound or is promised the node; else NONE."""
    tasks, status = snapshot.tasks, snapshot.tasks.status[rows]
    waits = (status == PENDING) | (status == TERMINATING)
    return np.where(tasks.runs(rows), tasks.node[rows], np.where(waits, tasks.nominated[rows], np.int32(NONE)))


def _repelling(snapshot: Snapshot, kind: _Kind) -> Sequence[tuple[Rows, str]]:
    """Term by term, the tasks that the kind repels or is repelled by (int64[K]), and the term's key; made once."""
    known = snapshot.answers(_repelling)
    if kind not in known:
        known[kind] = tuple(_repelling_of(snapshot, *_said(snapshot, kind)))
    return known[kind]


def _repelling_of(
    snapshot: Snapshot, own: Constraint, carried: tuple[tuple[str, str], ...]
) -> Iterator[tuple[Rows, str]]:
    tasks, vocabulary, space = snapshot.tasks, snapshot.vocabulary, snapshot.podgroups.namespace
    for term in own.anti_affinity:
        met = np.array([selects(term, label_set) for label_set in vocabulary.label_sets], bool)
        there = [
            applies_in(vocabulary, own.namespace, term, other) for other in range(int(space.max(initial=NONE)) + 1)
        ]
        rows = met[tasks.label_set].nonzero()[0]  # mostly few tasks have labels that a term names
        yield rows[np.array(there, bool)[space[tasks.podgroup[rows]]]], term.topology_key
    for other, theirs in enumerate(vocabulary.constraints):
        for term in theirs.anti_affinity:
            if _means(vocabulary, theirs.namespace, term, (own, carried)):
                yield (snapshot.shapes.constraint == other)[tasks.shape].nonzero()[0], term.topology_key


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
    tasks, nodes = snapshot.tasks, len(snapshot.nodes)
    constraint, labels = int(snapshot.shapes.constraint[tasks.shape[task]]), int(tasks.label_set[task])
    terms = _repelling(snapshot, (constraint, labels)) if concerns(snapshot, np.array([task])) else ()
    repels, repelled = np.zeros((len(terms), len(tasks)), np.uint8), np.zeros(nodes, np.int64)
    domain = np.array([domains_by(snapshot, key) for _, key in terms], np.int64).reshape(len(terms), nodes)
    for at, ((rows, _), domains) in enumerate(zip(terms, domain, strict=True)):
        repels[at, rows] = 1
        place = _place_of(snapshot, rows)
        taken = domains[place[place != NONE]]
        often = np.bincount(taken[taken != NONE], minlength=int(domains.max(initial=0)) + 1)
        repelled += np.where(domains == NONE, 0, often[domains])
    return KindRepulsion(repels, domain, repelled)


def denying(snapshot: Snapshot, constraints: Ids, label_sets: Ids) -> Rows:
    """int64[K]: tasks that deny nodes to some kind as long as they stay on a node; kinds as in ``exclusions``."""
    return distinct(joined(rows for kind in _kinds(constraints, label_sets) for rows, _ in _repelling(snapshot, kind)))


def spares_other_nodes(snapshot: Snapshot, constraints: Ids, label_sets: Ids) -> bool:
    """Whether anti-affinity of some kinds, in both directions, never reaches beyond the node of a task.

    This holds where every term is by hostname, or by another key that makes each node a domain of its own.
    """
    kinds = _kinds(constraints, label_sets)
    keys = {key for kind in kinds for rows, key in _repelling(snapshot, kind) if len(rows)}
    return all(of_single_nodes(domains_by(snapshot, key)) for key in sorted(keys.union(_conflicts(snapshot, kinds)[1])))


def reaches_other_nodes(snapshot: Snapshot, constraints: Ids, label_sets: Ids, among: Bools) -> bool:
    """Whether some of the tasks ``among`` (bool[T]) deny more than their own nodes to some kind, see above."""
    kinds = _kinds(constraints, label_sets)
    keys = {key for kind in kinds for rows, key in _repelling(snapshot, kind) if among[rows].any()}
    return not all(of_single_nodes(domains_by(snapshot, key)) for key in sorted(keys))


def of_single_nodes(domains: Longs) -> bool:
    """Whether each node is a domain of its own; ``domains`` int64[N] as in ``Exclusions``."""
    found = distinct(domains)
    return len(found) == len(domains) and NONE not in found[:1]


def _conflicts(snapshot: Snapshot, kinds: list[_Kind]) -> tuple[Longs, tuple[str, ...], Longs]:
    said = [_said(snapshot, kind) for kind in kinds]
    pairs = [
        (one, other, term.topology_key)
        for one, (own, _) in enumerate(said)
        for other, theirs in enumerate(said)
        for term in own.anti_affinity
        if _means(snapshot.vocabulary, own.namespace, term, theirs)
    ]
    keys = tuple(sorted({key for _, _, key in pairs}))
    conflict = np.zeros((len(kinds), len(kinds)), np.int64)
    for one, other, key in pairs:
        conflict[one, other] |= 1 << keys.index(key)
        conflict[other, one] |= 1 << keys.index(key)
    domains = np.array([domains_by(snapshot, key) for key in keys], np.int64).reshape(len(keys), len(snapshot.nodes))
    return conflict, keys, domains
