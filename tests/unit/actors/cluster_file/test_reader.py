"""Cluster files: what is read, and the sentence for what is not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping
from actors.cluster_file.reader import read_cluster
from tests.support.clusters import changed, refusal, small_file


def test_a_right_file_is_read() -> None:
    cluster = read_cluster(small_file())
    assert [queue.name for queue in cluster.queues] == ["ml", "nlp"]
    assert cluster.podgroups[0].preemptible is None, "what is absent stays absent"
    assert [*cluster.podgroups[1].tasks[0].expanded()] == [("worker-0", 0), ("worker-1", 1), ("worker-2", 2)]


def test_a_case_may_bear_its_four_keys() -> None:
    case = {**small_file(), "note": "n", "source": {"project": "p"}, "corrected": "c", "expect": {"cycles": 2}}
    expect = read_cluster(case).expect
    assert expect is not None
    assert (expect.cycles, expect.stable_cycles) == (2, 0)


def test_case_keys_belong_at_the_top_only() -> None:
    assert refusal(changed("nodes.0.expect", {})).startswith("nodes[0].expect: expected one of name, allocatable, ")


def test_a_parent_named_root_need_not_be_described() -> None:
    assert read_cluster(changed("queues.0.parent", "root")).queues[0].parent == "root"


@pytest.mark.parametrize("roles", [{}, {"worker": {"min": 1}}])
def test_a_role_may_be_named_by_tasks_only(roles: dict[str, Any]) -> None:
    document = changed("podgroups.0.roles", roles)
    document["podgroups"][0]["tasks"][0]["role"] = "boss"
    assert read_cluster(document).podgroups[0].tasks[0].role == "boss"


def test_yaml_and_json_say_the_same() -> None:
    text = (
        "version: 1\nid: 'x'\nnow: 1.5e3\nnodes:\n- {name: n0, allocatable: {cpu: 1e3, memory: 1Gi}, labels: {a: on}}\n"
    )
    read = read_mapping(text, "f.yaml")
    assert read == read_mapping(json.dumps(read), "f.json")
    assert read["nodes"][0] == {"name": "n0", "allocatable": {"cpu": 1000.0, "memory": "1Gi"}, "labels": {"a": "on"}}
    assert read["now"] == 1500.0
    assert read_mapping("\ufeffa: !!int 5", "f.yaml") == {"a": 5}


#: Each line twice as large as the one before, once aliases are followed.
DOUBLING = "\n".join(["a0: &a0 [x]", *(f"a{at}: &a{at} [*a{at - 1}, *a{at - 1}]" for at in range(1, 40))])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3", 'f, line 3, column 1: expected each key once, found "a" again'),
        ('{"a": 1,\n "b": {"c": 1, "c": 2}}', 'f, line 2, column 16: expected each key once, found "c" again'),
        ("a: [1", "f, line "),
        ('{"a": [1}', "f, line 1, column 9: expected JSON or YAML: "),
        ("1: 2", "f, line 1, column 1: expected a key that is text"),
        ("a: *b", "f, line 1, column 4: expected YAML: found undefined alias"),
        ("a: !!python/name:os.system x", "f, line 1, column 4: expected YAML: could not determine a constructor"),
        ("ä: ö\n\tb: 1", "f, line 2, column 1: expected spaces before a key, found a tab"),
        ("a: 1\n---\nb: 1", "f, line 2, column 1: expected YAML: but found another document"),
        ("a: \x00", "f: expected YAML or JSON: "),
        ("- 1", "f: expected a mapping, found [1]"),
        ("", "f: expected a mapping, found nothing"),
        ("[" * 100_000, "f, line 1, column 65: expected at most 64 levels of nesting, found more"),
        ('{"a":' * 100_000, "f, line 1, column 321: expected at most 64 levels of nesting, found more"),
        ("a: &a [*a]", "f, line 1, column 8: expected no alias of what it stands in, found *a"),
        (DOUBLING, "f, line 23, column 18: expected at most 20000000 values, found more"),
        ('{"now": 1' + "0" * 5000 + "}", "f, line 1, column 9: expected a whole number that is shorter"),
        ("a: !!bool 3", 'f, line 1, column 4: expected true or false, found "3"'),
        ("a: !!int ''", 'f, line 1, column 4: expected a whole number, found ""'),
        ("a: !!int 0x10", 'f, line 1, column 4: expected a whole number, found "0x10"'),
        ("a: !!float x", 'f, line 1, column 4: expected a number, found "x"'),
        ("a: !!null 1", 'f, line 1, column 4: expected null, found "1"'),
        ("a: !!timestamp x", "f, line 1, column 4: expected YAML: could not determine a constructor"),
        ("a: !!int [1]", "f, line 1, column 4: expected a scalar node"),
        ('{"id": "\\ud800"}', "f: expected Unicode text, found half of a surrogate pair"),
    ],
    ids=range(25),
)
def test_what_is_neither_yaml_nor_json_is_refused_where_it_stops(text: str, sentence: str) -> None:
    with pytest.raises(ClusterFileRefused) as refused:
        read_mapping(text, "f")
    assert str(refused.value).startswith(sentence)


def test_an_alias_stands_for_what_it_names() -> None:
    text = "nodes: [&n {name: n0, allocatable: &one {cpu: 1}}, {<<: *n, name: n1}, {name: n2, allocatable: *one}]"
    assert [node["allocatable"] for node in read_mapping(text, "f")["nodes"]] == [{"cpu": 1}] * 3


def test_json_that_is_not_json_s_numbers_is_no_number() -> None:
    assert refusal(read_mapping('{"version": 1, "now": NaN}', "f")) == 'now: expected a number, found "NaN"'


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
TASK = "podgroups.0.tasks.0"
PATHS = st.sampled_from(
    ["version", "now", "nodes", "nodes.0", "nodes.0.allocatable", "topology", "topology.domains.0", "queues.1", "x",
     "queues.0.weight", "podgroups.0", "podgroups.0.tasks", "podgroups.0.subgroups.0", "podgroups.0.roles", "expect",
     "podgroups.0.queue", "policy", "policy.tiers", "policy.plugins", f"{TASK}.request", f"{TASK}.status",
     f"{TASK}.node_affinity"]
)  # fmt: skip


def refused_with(read: Callable[[], object]) -> str | None:
    """The sentence of a refusal, None where there was none."""
    try:
        read()
    except ClusterFileRefused as refused:
        return str(refused)
    return None


@given(PATHS, PLAIN)
def test_any_value_anywhere_is_read_or_refused_by_its_path(path: str, value: Any) -> None:
    sentence = refused_with(lambda: read_cluster(changed(path, value)))
    assert sentence is None or ": expected " in sentence


@given(st.text(max_size=60))
def test_no_text_at_all_makes_the_reader_fail(text: str) -> None:
    sentence = refused_with(lambda: read_mapping(text, "f"))
    assert sentence is None or ": " in sentence
