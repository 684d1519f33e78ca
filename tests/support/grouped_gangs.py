"""Gangs whose subgroups are inside each other, drawn at random: levels, several shapes, cards and anti-affinity."""

import numpy as np
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, frozen
from pipeline.cluster.tables import Nodes
from pipeline.cluster.vocabulary import AntiAffinity, Constraint
from pipeline.records import replace
from tests.support.placing import BLOCK, RACK, Work, placed

APART = [Constraint(anti_affinity=(AntiAffinity(key, (("app", "a"),)),)) for key in ("kubernetes.io/hostname", "zone")]


def gang(draw, *, crowded=False):
    """A gang of subgroups inside each other, of several shapes, with preferred levels, cards and anti-affinity.

    ``crowded``: other tasks run there, which repel some of it.
    """
    racks = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    cores = draw(st.lists(st.integers(0, 8), min_size=sum(racks), max_size=sum(racks)))
    many, repels = draw(st.integers(1, 4)), draw(st.booleans())
    levels, parts = st.sampled_from([NONE, BLOCK, RACK, RACK]), st.integers(NONE, many - 1)
    tree = [(0, draw(st.integers(NONE, part - 1)), 0, draw(levels)) for part in range(many)]
    constraints = st.sampled_from([Constraint(), *APART] if repels else [Constraint()])
    labels = st.sampled_from([(("app", "a"),), (("app", "b"),)] if repels else [()])
    cpus = st.sampled_from([1, 1, 2, 4])
    tasks = draw(st.lists(st.tuples(cpus, parts, constraints, labels), min_size=2, max_size=9 if repels else 20))
    work = [Work(0, cpu, subgroup=part, constraint=one, labels=said) for cpu, part, one, said in tasks]
    zones = [{"zone": str(node // 3)} for node in range(sum(racks))]
    groups = [{"min_available": len(work)}, {}]
    where = draw(st.lists(st.integers(0, sum(racks) - 1), max_size=6)) if crowded else []
    work += [Work(1, node=node, constraint=draw(constraints), labels=draw(labels)) for node in where]
    snapshot = placed(cores, work, racks=racks, racks_a_block=2, groups=groups, subgroups=tree, labels=zones)
    preferred = frozen(draw(st.lists(st.sampled_from([NONE, RACK]), min_size=many, max_size=many)), np.int32)
    snapshot = replace(snapshot, subgroups=replace(snapshot.subgroups, preferred_level=preferred))
    return with_cards(draw, snapshot) if draw(st.booleans()) else snapshot


def with_cards(draw, snapshot):
    """Nodes have two cards each, and shapes ask for parts of them."""
    free = draw(st.lists(st.sampled_from([0, 50, 100]), min_size=2 * len(snapshot.nodes), max_size=None))
    cards = frozen(np.array(free[: 2 * len(snapshot.nodes)]).reshape(-1, 2), np.int64)
    some = st.lists(st.sampled_from([0, 20, 30, 50]), min_size=len(snapshot.shapes), max_size=len(snapshot.shapes))
    nodes: Nodes = replace(snapshot.nodes, cards=cards, card_set=frozen(np.ones(len(cards)), np.int32))
    vocabulary = replace(snapshot.vocabulary, card_sets=((), ("0", "1")))
    shapes = replace(snapshot.shapes, on_card=frozen(draw(some), np.int64))
    return replace(snapshot, nodes=nodes, vocabulary=vocabulary, shapes=shapes)


@st.composite
def gangs(draw):
    return gang(draw)


@st.composite
def crowded(draw):
    """A gang beside others, and those of these that leave."""
    snapshot = gang(draw, crowded=True)
    runs = np.flatnonzero(snapshot.tasks.node != NONE)
    return snapshot, runs[[draw(st.booleans()) for _ in runs]]
