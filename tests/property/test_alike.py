"""Documents that are alike are read once for each kind, and what comes out is what reading each of them gives."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from actors.cluster_file.documents import ClusterDocument, NodeDocument, PodgroupDocument
from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping, surely_shallow
from actors.cluster_file.task_documents import TaskDocument, expanded
from actors.documents.alike import Alike
from actors.documents.model import Document, ListOf
from actors.documents.safe_msgpack import deeper_than

NAMES = st.sampled_from(["a", "b", "n0", "a/b", "", None, 3])
WRONG = st.sampled_from([None, "", "x", -1, 1, True, 1.5, float("nan"), float("inf"), [], {}])


def rows(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of one to eight rows: two kinds of row, and now and then a key of another value."""
    some = st.fixed_dictionaries({}, optional=keys)
    differ = st.fixed_dictionaries({}, optional={**keys, "unknown": WRONG})
    names = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=1, max_size=8)
    return st.builds(
        lambda kinds, called, others: [
            {**kinds[at % 2], "name": name, **(others[at] if at < len(others) else {})}
            for at, name in enumerate(called)
        ],
        st.tuples(some, some), names, st.lists(st.one_of(st.just({}), st.just({}), differ), max_size=8),
    )  # fmt: skip


REQUESTS = st.sampled_from([{"cpu": 1}, {"cpu": "1"}, {"cpu": 1.0}, {"gpu": 0.5}, {"cpu": True}])
TASKS = rows(
    status=st.sampled_from(["Running", "Pending", "Running", "Nowhere"]), request=REQUESTS, node=NAMES, card=NAMES,
    created=st.one_of(st.integers(0, 3), WRONG), index=WRONG, incarnation=st.integers(0, 3), nominated_node=NAMES,
    card_request=st.sampled_from([None, "1Gi", 1]), count=st.sampled_from([None, 1, 2]), priority=st.integers(0, 2),
)  # fmt: skip
NODES = rows(
    allocatable=st.one_of(REQUESTS, st.just({"cpu": 4})), labels=st.sampled_from([{}, {"rack": "r"}, {"rack": 1}]),
    unschedulable=st.booleans(), cards=st.sampled_from([[], [{"name": "c", "capacity": "1Gi"}], [{"name": "c"}]]),
)  # fmt: skip


ADAPTERS = {kind: TypeAdapter(kind) for one in (TaskDocument, NodeDocument) for kind in (Alike[one], ListOf[one])}


def read(kind: Any, given_rows: list[dict[str, Any]]) -> Any:
    """The documents, or the errors as pydantic tells them."""
    try:
        return list(ADAPTERS[kind].validate_python(given_rows, strict=True))
    except ValidationError as refused:
        return repr(refused.errors(include_url=False))


def same(document: type[Document], given_rows: list[dict[str, Any]]) -> None:
    by_kind = read(Alike[document], given_rows)  # type: ignore[valid-type]
    each = read(ListOf[document], given_rows)  # type: ignore[valid-type]
    assert by_kind == each
    if isinstance(each, list):
        assert [one.model_dump(exclude_unset=True) for one in by_kind] == [
            one.model_dump(exclude_unset=True) for one in each
        ]


@given(TASKS)
def test_tasks_read_by_kind_are_the_tasks_read_one_by_one(tasks: list[dict[str, Any]]) -> None:
    same(TaskDocument, tasks)


@given(NODES)
def test_nodes_read_by_kind_are_the_nodes_read_one_by_one(nodes: list[dict[str, Any]]) -> None:
    same(NodeDocument, nodes)


@given(TASKS)
def test_names_and_indices_by_kind_are_those_of_each_task(tasks: list[dict[str, Any]]) -> None:
    try:
        group = PodgroupDocument.model_validate({"name": "g", "queue": "q", "tasks": tasks})
    except ValidationError:
        return
    names, index, times = expanded(group.tasks)
    each = [[*task.expanded()] for task in group.tasks]
    assert [*zip(names, index, strict=True)] == [one for many in each for one in many]
    assert times == [len(many) for many in each]


@given(st.lists(st.one_of(TASKS, st.just([]), WRONG), min_size=1, max_size=5))
def test_tasks_of_all_podgroups_read_together_are_those_of_each_podgroup(lists: list[Any]) -> None:
    podgroups = [{"name": f"g{at}", "queue": "q", "tasks": tasks} for at, tasks in enumerate(lists)]
    try:
        each = [PodgroupDocument.model_validate(one) for one in podgroups]
    except ValidationError:
        with pytest.raises(ValidationError) as told:
            ClusterDocument.model_validate({"version": 1, "podgroups": podgroups})
        at = told.value.errors()[0]["loc"][1]
        with pytest.raises(ValidationError) as alone:
            PodgroupDocument.model_validate(podgroups[int(at)])
        assert [(one["loc"][2:], one["msg"], repr(one["input"])) for one in told.value.errors()] == [
            (one["loc"], one["msg"], repr(one["input"])) for one in alone.value.errors()
        ]
    else:
        together = ClusterDocument.model_validate({"version": 1, "podgroups": podgroups}).podgroups
        assert list(together) == each
        for read, alone_read in zip(together, each, strict=True):
            assert read.model_dump(exclude_unset=True) == alone_read.model_dump(exclude_unset=True)
            assert read.tasks.times == [[*read.tasks.kind].count(at) for at in range(len(read.tasks.kinds))]


def test_podgroups_share_a_kind_of_task_and_its_parts() -> None:
    tasks = [{"name": f"t-{at}", "request": {"cpu": 1}, "status": "Running", "node": f"n{at}"} for at in range(6)]
    groups = [{"name": f"g-{at}", "queue": "q", "tasks": tasks[at : at + 2]} for at in (0, 2, 4)]
    read = ClusterDocument.model_validate({"version": 1, "podgroups": groups}).podgroups
    assert [one.tasks.kinds for one in read] == [read[0].tasks.kinds] * 3
    assert read[0].tasks.kinds[0] is read[2].tasks.kinds[0]
    assert [task.name for one in read for task in one.tasks] == [task["name"] for task in tasks]


def test_rows_of_a_kind_share_what_they_have_in_common_and_are_written_as_they_were_given() -> None:
    tasks = [{"name": f"t-{at}", "request": {"cpu": 1}, "status": "Running", "node": f"n{at}"} for at in range(100)]
    group = PodgroupDocument.model_validate({"name": "g", "queue": "q", "tasks": tasks})
    assert len(group.tasks.kinds) == 1
    assert group.tasks[7].request is group.tasks[93].request
    assert group.model_dump(exclude_unset=True)["tasks"] == tuple(tasks)
    assert json.loads(group.model_dump_json(exclude_unset=True))["tasks"] == tasks


# -- text --------------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(['"a"', '"b"', '"a:b"', '"\\u003a"', '"\\u0061"', '":"', '"\\\\u003a"', '"\\ud83d\\ude00"'])
TEXTS = st.recursive(
    st.one_of(WORDS, st.sampled_from(["1", "-0.0", "1e400", "12345678901234567890123", "true", "null", '"\\ud800"'])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.lists(st.tuples(WORDS, inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
    ),
    max_leaves=8,
)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


@given(st.lists(st.tuples(WORDS, TEXTS), min_size=1, max_size=4))
def test_json_is_read_as_the_library_reads_it_and_a_key_given_twice_is_refused(pairs: list[tuple[str, str]]) -> None:
    text = "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
    try:
        expected = json.loads(text, object_pairs_hook=_once)
        json.dumps(expected, ensure_ascii=False).encode()
    except ValueError:  # also half a surrogate pair
        with pytest.raises(ClusterFileRefused):
            read_mapping(text, "f")
    else:
        assert repr(read_mapping(text, "f")) == repr(expected)


NESTED = st.recursive(
    st.sampled_from([1, "", "a", "[", "]}", '"', "\\", "\\[", "é"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "]", "{"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(NESTED, st.integers(1, 6))
def test_json_that_is_told_to_be_shallow_is_not_deeper(value: Any, most: int) -> None:
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert not (surely_shallow(written, most) and deeper_than(value, most))


def test_a_file_without_brackets_in_its_texts_is_told_to_be_shallow() -> None:
    written = json.dumps({"nodes": [{"name": "a", "labels": {"b": "c"}}, {}, []]}, separators=(",", ":")).encode()
    assert surely_shallow(written, 64)
    assert not surely_shallow(written.replace(b'"a"', b'"]"'), 64)
