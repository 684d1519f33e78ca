"""Which nodes a task may use, by the semantics of Kubernetes."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.cluster.rules.anti_affinity import concerns, denials, domains_by, exclusions, not_yet
from pipeline.cluster.rules.constraints import CORDON, allowed, tolerates
from pipeline.cluster.vocabulary import HOSTNAME, AntiAffinity, Constraint, Requirement, Taint, Toleration
from pipeline.errors import StateRefused
from tests.support.placing import NOWHERE, Work, apart, placed

ZONES = [{"zone": "a", "size": "5"}, {"zone": "b", "size": "10"}, {"zone": "c", "size": "big"}, {}]


def open_to(constraint, **columns):
    snapshot = placed([4] * 4, [Work(0, constraint=constraint)], **columns)
    return np.flatnonzero(allowed(snapshot, snapshot.tasks.shape[:1])[0]).tolist()


def meets(key, operator, *values):
    return open_to(Constraint(node_selector=(Requirement(key, operator, values),)), labels=ZONES)


def test_many_constraints_are_told_apart():
    words = [Constraint(node_selector=(Requirement("zone", "In", (f"z{at}",)),)) for at in range(200)]
    work = [Work(0, constraint=one) for one in words]
    snapshot = placed([4] * 200, work, labels=[{"zone": f"z{at}"} for at in range(200)])
    assert (allowed(snapshot, snapshot.tasks.shape) == np.eye(200, dtype=bool)).all()


@pytest.mark.parametrize(
    ("operator", "values", "nodes"),
    [
        ("In", ("a", "c"), [0, 2]), ("NotIn", ("a",), [1, 2, 3]), ("Exists", (), [0, 1, 2]),
        ("DoesNotExist", (), [3]), ("In", (), []),
    ],
)  # fmt: skip
def test_operators_on_values(operator, values, nodes):
    assert meets("zone", operator, *values) == nodes


@pytest.mark.parametrize(
    ("operator", "bound", "nodes"),
    [
        ("Gt", "5", [1]),
        ("Gt", "4", [0, 1]),
        ("Lt", "6", [0]),
        ("Gt", "five", []),
        ("Lt", "9" * 30, []),
        ("Gt", "-1", [0, 1]),
    ],
)
def test_gt_and_lt_compare_integers_and_fail_on_anything_else(operator, bound, nodes):
    assert meets("size", operator, bound) == nodes


def test_a_key_that_no_node_has_is_absent_everywhere():
    assert meets("rack", "NotIn", "a") == meets("rack", "DoesNotExist") == [0, 1, 2, 3]
    assert meets("rack", "Exists") == meets("rack", "Gt", "1") == []


def test_an_unknown_operator_is_refused_by_name():
    with pytest.raises(StateRefused, match="'Near'"):
        meets("zone", "Near", "a")


def test_affinity_is_one_of_several_terms_that_must_hold_whole():
    first = (Requirement("zone", "In", ("a", "b")), Requirement("size", "Gt", ("7",)))
    second = (Requirement("zone", "DoesNotExist", ()),)
    assert open_to(Constraint(node_affinity=(first, second)), labels=ZONES) == [1, 3]


def test_an_empty_affinity_term_matches_nothing():
    assert open_to(Constraint(node_affinity=((),)), labels=ZONES) == []


def test_hard_taints_repel_and_soft_ones_do_not():
    taints = [
        (Taint("k", "v", "NoSchedule"),),
        (Taint("k", "v", "PreferNoSchedule"),),
        (),
        (Taint("k", "", "NoExecute"),),
    ]
    assert open_to(Constraint(), taints=taints) == [1, 2]
    assert open_to(Constraint(tolerations=(Toleration("k", "Equal", "v", ""),)), taints=taints) == [0, 1, 2]
    assert open_to(Constraint(tolerations=(Toleration("", "Exists", "", ""),)), taints=taints) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", "Exists", "", ""), True), (Toleration("k", "Exists", "", "NoExecute"), False),
        (Toleration("k", "Equal", "v", "NoSchedule"), True), (Toleration("k", "Equal", "w", ""), False),
        (Toleration("l", "Exists", "", ""), False),
    ],
)  # fmt: skip
def test_a_toleration_covers_what_it_names(toleration, tolerated):
    assert tolerates(toleration, Taint("k", "v", "NoSchedule")) is tolerated


def test_every_taint_of_a_node_must_be_tolerated():
    both = (Taint("k", "v", "NoSchedule"), Taint("l", "", "NoSchedule"))
    assert open_to(Constraint(tolerations=(Toleration("k", "Exists", "", ""),)), taints=[both, (), (), ()]) == [1, 2, 3]


def test_a_cordoned_node_takes_only_who_tolerates_the_cordon():
    assert open_to(Constraint(), cordoned=[1]) == [0, 2, 3]
    assert open_to(Constraint(tolerations=(Toleration(CORDON.key, "Exists", "", ""),)), cordoned=[1]) == [0, 1, 2, 3]


def test_each_shape_has_its_own_row():
    strict = Constraint(node_selector=(Requirement("zone", "In", ("a",)),))
    snapshot = placed([4] * 4, [Work(0), Work(0, constraint=strict), Work(0, cpu=2)], labels=ZONES)
    assert allowed(snapshot, np.array([0, 1, 2])).sum(axis=1).tolist() == [4, 1, 4]


def shut(snapshot, task, leaving=NOWHERE):
    kind = snapshot.shapes.constraint[snapshot.tasks.shape[[task]]], snapshot.tasks.label_set[[task]]
    return np.flatnonzero(exclusions(snapshot, *kind, leaving).excluded[0]).tolist()


X = (("app", "x"),)


def test_anti_affinity_concerns_a_task_only_if_a_term_is_its_own_or_selects_it():
    assert not concerns(placed([4], [Work(0, labels=X)]), np.array([0]))
    snapshot = placed([4], [Work(0, labels=X), Work(0, constraint=apart(app="x")), Work(0)])
    assert [concerns(snapshot, np.array([task])) for task in range(3)] == [True, True, False]


def test_own_terms_shut_the_nodes_of_those_they_match():
    snapshot = placed([4, 4], [Work(0, node=1, labels=X), Work(0, constraint=apart(app="x"))])
    assert shut(snapshot, 1) == [1]
    assert shut(snapshot, 1, leaving=np.array([0])) == []


def test_the_terms_of_running_tasks_bind_newcomers():
    assert shut(placed([4, 4], [Work(0, node=0, constraint=apart(app="x")), Work(0, labels=X)]), 1) == [0]


def test_a_promised_node_counts_and_an_ending_task_does_not():
    term = apart(app="x")
    assert shut(placed([4, 4], [Work(0, nominated=1, labels=X), Work(0, constraint=term)]), 1) == [1]
    assert shut(placed([4, 4], [Work(0, node=1, labels=X, status=3), Work(0, constraint=term)]), 1) == []


@pytest.mark.parametrize("mine", [True, False])
def test_tasks_that_end_or_are_about_to_keep_those_they_repel_from_starting_in_their_domain(mine):
    named, repels = Work(0, node=1, labels=X), Work(0, node=1, constraint=apart(app="x"))
    here, new = (named, replace(repels, node=-1)) if mine else (repels, replace(named, node=-1))
    for status, leaving, nodes in ((3, NOWHERE, [1]), (None, NOWHERE, []), (None, np.array([0]), [1])):
        snapshot = placed([4, 4], [replace(here, status=status), new])
        kind = snapshot.shapes.constraint[snapshot.tasks.shape[[1]]], snapshot.tasks.label_set[[1]]
        assert np.flatnonzero(not_yet(snapshot, *kind, leaving)[0]).tolist() == nodes


def test_another_namespace_is_not_meant():
    other = apart(app="x")
    other = Constraint(anti_affinity=other.anti_affinity, namespace=1)
    work = [Work(0, node=0, labels=X), Work(1, constraint=other), Work(1, node=1, labels=X, constraint=other)]
    assert shut(placed([4, 4], work, groups=[{}, {"namespace": 1}]), 1) == [1]


@pytest.mark.parametrize(
    ("named", "nodes"), [((), [1]), (("default",), [0]), (("default", "other"), [0, 1]), (("*",), [0, 1])]
)
def test_a_term_looks_in_the_namespaces_that_it_names_else_in_its_own(named, nodes):
    term = AntiAffinity(HOSTNAME, X, namespaces=named)
    other = Constraint(anti_affinity=(term,), namespace=1)
    work = [Work(0, node=0, labels=X), Work(1, node=1, labels=X), Work(1, constraint=other), Work(0, labels=X)]
    snapshot = placed([4, 4], work, groups=[{}, {"namespace": 1}])
    snapshot = replace(snapshot, vocabulary=replace(snapshot.vocabulary, namespaces=("default", "other")))
    assert shut(snapshot, 2) == nodes
    assert concerns(snapshot, np.array([3])) == (named != ())


def test_the_term_of_a_running_task_binds_newcomers_of_the_namespaces_that_it_names():
    term = Constraint(anti_affinity=(AntiAffinity(HOSTNAME, X, namespaces=("default",)),), namespace=1)
    snapshot = placed([4, 4], [Work(1, node=0, constraint=term), Work(0, labels=X)], groups=[{}, {"namespace": 1}])
    snapshot = replace(snapshot, vocabulary=replace(snapshot.vocabulary, namespaces=("default", "other")))
    assert shut(snapshot, 1) == [0]


@pytest.mark.parametrize(
    ("operator", "values", "nodes"),
    [
        ("In", ("x", "z"), [0]), ("NotIn", ("x",), [1, 2]), ("Exists", (), [0, 1]), ("DoesNotExist", (), [2]),
        ("In", (), []),
    ],
)  # fmt: skip
def test_terms_select_by_expressions_as_well(operator, values, nodes):
    term = AntiAffinity(HOSTNAME, (("kind", "k"),), (Requirement("app", operator, values),))
    kinds = [(("app", "x"), ("kind", "k")), (("app", "y"), ("kind", "k")), (("kind", "k"),), X]
    running = [Work(0, node=node, labels=labels) for node, labels in enumerate(kinds)]
    snapshot = placed([4] * 4, [*running, Work(0, constraint=Constraint(anti_affinity=(term,)))])
    assert shut(snapshot, 4) == nodes


def test_a_topology_key_shuts_all_nodes_with_the_same_value_and_none_without_it():
    labels = [{"zone": "a"}, {"zone": "a"}, {"zone": "b"}, {}]
    work = [Work(0, node=0, labels=X), Work(0, node=3, labels=X), Work(0, constraint=apart("zone", app="x"))]
    assert shut(placed([4] * 4, work, labels=labels), 2) == [0, 1]


def test_a_node_without_the_hostname_label_is_a_domain_of_its_own():
    assert domains_by(placed([4] * 3, [Work(0)]), HOSTNAME).tolist() == [0, 1, 2]
    labelled = placed([4] * 3, [Work(0)], labels=[{HOSTNAME: "a"}, {}, {HOSTNAME: "a"}])
    assert len(set(domains_by(labelled, HOSTNAME).tolist())) == 2


def test_what_is_denied_on_some_nodes_is_what_is_denied_there_of_all_whichever_tasks_leave_first():
    zones = [{"zone": "a"}, {"zone": "a"}, {"zone": "b"}, {}, {"zone": "b"}]
    work = [
        Work(0, constraint=apart("zone", app="x")),
        Work(0, labels=(("app", "y"),)),
        Work(1, node=0, labels=(("app", "x"),)),
        Work(1, node=4, labels=(("app", "x"),)),
        Work(1, node=2, constraint=apart(app="y")),
        Work(1, node=3, constraint=apart("zone", app="y")),
    ]
    snapshot = placed([4] * 5, work, groups=[{}, {}], labels=zones)
    kinds = snapshot.shapes.constraint[snapshot.tasks.shape[:2]], snapshot.tasks.label_set[:2]
    all_denied = [[True, True, True, False, True], [False, False, True, False, False]]
    assert exclusions(snapshot, *kinds, NOWHERE).excluded.tolist() == all_denied
    for start, stop in ((0, 5), (0, 2), (2, 4), (3, 5)):
        asked = denials(snapshot, *kinds, start, stop)
        for leaving in ([], [2], [3], [2, 3, 4], [4], []):
            whole = exclusions(snapshot, *kinds, np.array(leaving, np.int64)).excluded
            assert asked.after(np.array(leaving, np.int64)).tolist() == whole[:, start:stop].tolist()
    gone = denials(snapshot, *kinds, 0, 5).after(np.array([3, 4]))
    assert gone.tolist() == [[True, True, False, False, False], [False] * 5]


def test_kinds_that_repel_each_other_conflict_in_both_directions():
    snapshot = placed([4] * 2, [Work(0, constraint=apart(app="x")), Work(0, labels=X)])
    found = exclusions(snapshot, snapshot.shapes.constraint[snapshot.tasks.shape], snapshot.tasks.label_set, NOWHERE)
    assert found.conflict.tolist() == [[0, 1], [1, 0]]
    assert found.keys == (HOSTNAME,)


def in_zone(name):
    return Constraint(node_selector=(Requirement("zone", "In", (name,)),))


def test_the_nodes_for_a_constraint_are_worked_out_once_while_nodes_stay_as_they_are(monkeypatch):
    before = placed([4] * 4, [Work(0, constraint=in_zone("b"))], labels=ZONES)
    shapes = before.tasks.shape[:1]
    first = allowed(before, shapes)
    monkeypatch.setattr("pipeline.cluster.rules.constraints.meaning", None)
    assert np.array_equal(allowed(replace(before, revision=9), shapes), first)
    cordoned = replace(before, nodes=replace(before.nodes, schedulable=np.zeros(4, bool)))
    with pytest.raises(TypeError):
        allowed(cordoned, shapes)


def test_in_another_vocabulary_the_row_of_a_constraint_has_another_meaning():
    before = placed([4] * 4, [Work(0, constraint=in_zone("b"))], labels=ZONES)
    shapes, words = before.tasks.shape[:1], before.vocabulary
    assert np.flatnonzero(allowed(before, shapes)[0]).tolist() == [1]
    others = tuple(in_zone("c") if one == in_zone("b") else one for one in words.constraints)
    after = replace(before, vocabulary=replace(words, constraints=others))
    assert np.flatnonzero(allowed(after, shapes)[0]).tolist() == [2]
