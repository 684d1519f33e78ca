"""What is sent to harm: it runs nothing, takes no more room than its own size, and is refused with its reason."""

from __future__ import annotations

import ast
import os
import pickle
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.broker.bus import DEAD, EVENTS, START, Entry
from actors.documents.safe_msgpack import NotPacked, WireLimits, unpacked, whole_number
from actors.protocol.envelopes import Message, RefusedMessage, decode_events
from pipeline.cluster.arrays import NONE
from tests.support.told_world import World, drained, task

ROOT = Path(__file__).parents[4]
SOURCES = sorted(path for top in ("pipeline", "actors", "deploy") for path in (ROOT / top).rglob("*.py"))
#: What makes objects, or runs what it reads.
BARRED_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
BARRED_CALLS = {"eval", "exec", "__import__"}
BARRED_ATTRIBUTES = {
    "yaml.load": "Loader", "yaml.full_load": "", "yaml.unsafe_load": "", "yaml.load_all": "", "np.load": "",
    "numpy.load": "", "builtins.eval": "", "builtins.exec": "", "builtins.compile": "",
}  # fmt: skip
LAST_WORDS = {name.rpartition(".")[2] for name in BARRED_ATTRIBUTES}
STARTED = {
    "version": 1, "uid": "t", "kind": "task_started", "revision": 2, "body": {"task": "default/a", "node": "n0"}
}  # fmt: skip
GROUP = {"name": "g", "namespace": "default", "queue": "q", "tasks": [{"name": "a"}]}


def barred(tree: ast.AST) -> list[str]:
    """What of a source could make objects out of bytes, as ``line: what``."""
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [name.name.split(".")[0] for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").split(".")[-1], (node.module or "").split(".")[0]]
            names += [name.name for name in node.names]
        found += [f"{node.lineno}: import {name}" for name in set(names) & BARRED_MODULES]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BARRED_CALLS:
            found.append(f"{node.lineno}: {node.func.id}()")
        if isinstance(node, ast.Attribute) and node.attr in LAST_WORDS and ast.unparse(node) in BARRED_ATTRIBUTES:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.Attribute) and node.attr in BARRED_MODULES:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append(f"{node.value.lineno}: allow_pickle")
    return found


def test_no_source_makes_objects_out_of_bytes() -> None:
    found = {str(path.relative_to(ROOT)): barred(ast.parse(path.read_text())) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    ["import pickle", "from ray import cloudpickle", "import marshal as m", "eval('1')", "yaml.load(text, x)",
     "ray.cloudpickle.loads(x)", "np.load(f)", "f(x, allow_pickle=True)", "from shelve import open"],
)  # fmt: skip
def test_a_line_that_does_is_noticed(line: str) -> None:
    assert barred(ast.parse(line)) != []


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, where: Path) -> None:
        self.where = where

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.where),)


def test_a_pickle_is_a_dead_letter_and_nothing_of_it_runs(tmp_path: Path) -> None:
    world, ran = World(), tmp_path / "ran"
    world.list_fleet()
    ingestor = world.ingestor()
    payload = pickle.dumps(Evil(ran))
    before = len(world.letters())
    world.bus.publish(EVENTS, {"batch": payload})
    world.bus.publish(EVENTS, {"batch": msgpack.packb([payload, {**STARTED, "body": payload}])})
    world.tell("task_started", task="default/train-0", node="n1")
    assert task(drained(ingestor), "train-0")["node"] == "n1"
    letters = world.bus.follow(DEAD, START)[before:]
    assert [payload in letter.fields["raw"] for letter in letters] == [True] * 3
    assert not ran.exists()
    pickle.loads(payload)
    assert ran.exists()  # it would have


def test_arrays_that_claim_to_be_long_get_no_room() -> None:
    claimed = b"\xdd\xff\xff\xff\xff" * 100_000
    with pytest.raises(NotPacked, match=r"(?i)cut off|stack"):
        unpacked(claimed)
    with pytest.raises(NotPacked, match="it is cut off"):
        unpacked(b"\xdd\x00\x0f\x00\x00" * 900 + b"\xc0" * 1_000_000)


@pytest.mark.parametrize("packed", [b"", b"\xc1", b"\x91", b"\xc0\xc0", b"\xa1\xff", b"\xd4\x05\x00", b"\x81\x01\x02"])
def test_bytes_that_are_not_one_plain_value_are_refused(packed: bytes) -> None:
    with pytest.raises(NotPacked):
        unpacked(packed)


@given(st.binary(max_size=300))
def test_no_bytes_at_all_do_anything_but_unpack_or_be_refused(packed: bytes) -> None:
    try:
        value = unpacked(packed)
    except NotPacked:
        return
    # Its size bounds what it may hold.
    assert len(repr(value)) <= 40 * (len(packed) + 1)


@pytest.mark.parametrize("depth", [33, 400, 600, 1_000])
def test_depth_is_refused_wherever_it_stands(depth: int) -> None:
    deep = b"\x91" * depth + b"\xc0"
    body = msgpack.packb({key: value for key, value in STARTED.items() if key != "body"})
    inside = b"\x85" + body[1:] + b"\xa4body\x81\xa1x" + deep
    packed = msgpack.packb(STARTED)
    entry = Entry(EVENTS, "7-0", {"batch": b"\x93" + deep + inside + packed})
    one, other, last = decode_events(entry)
    for refused in (one, other):
        assert isinstance(refused, RefusedMessage)
        assert refused.reason == "message: expected at most 32 levels of nesting, found more"
        assert 0 < len(refused.raw) <= 1_200
    assert isinstance(last, Message)


def test_depth_beyond_what_msgpack_itself_bears_refuses_the_entry() -> None:
    (refused,) = decode_events(Entry(EVENTS, "7-0", {"batch": b"\x91" * 500_000 + b"\xc0"}))
    assert isinstance(refused, RefusedMessage)
    assert refused.reason.startswith("batch: expected msgpack")


WORST: list[tuple[str, dict[str, Any], str]] = [
    ("podgroup_upserted", {**GROUP, "gang_group": ["x", *(f"{at:x}" for at in range(150_000)), "x"]},
     "body.gang_group[150001]: expected each name once, found \"x\""),
    ("podgroup_upserted", {**GROUP, "tasks": [0] * 900_000}, "body.tasks[0]: expected a mapping, found 0"),
    ("podgroup_upserted", {**GROUP, "tasks": [{"name": "a", "tolerations": [{}] * 900_000}]},
     "body.tasks[0].tolerations[0].operator: expected Exists where there is no key"),
    ("node_upserted", {"name": "n", "allocatable": {f"{at:x}": 1 for at in range(100_000)}},
     "body.allocatable: expected at most 128 keys, found 100000"),
    ("node_upserted", {"name": "n", "allocatable": {}, "labels": {f"{at:x}": 1 for at in range(100_000)}},
     "body.labels: expected at most 1000 keys, found 100000"),
    ("node_upserted", {"name": "n" * 1_000_000, "allocatable": {}}, "body.name: expected at most 512 characters"),
    ("node_upserted", {"name": "n", "allocatable": {"cpu": "9" * 1_000_000}}, "body.allocatable.cpu: expected a non-"),
    ("node_upserted", {"name": "n", "allocatable": {"cpu": "1e999999999"}}, "body.allocatable.cpu: expected a non-"),
    ("node_upserted", {"name": "n", "allocatable": {"cpu": 2**64 - 1}}, "body.allocatable.cpu: expected a quantity"),
    ("node_upserted", {"name": "n", "allocatable": {"cpu": float("nan")}}, "body.allocatable.cpu: expected a non-"),
    ("task_started", {"task": "default/a", "node": "n0", "incarnation": 2**63}, "body.incarnation: expected at most"),
    ("task_started", {"task": "default/a", "node": "n0", "at": float("inf")}, "body.at: expected a finite number"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "why"), WORST, ids=[why.split(" ")[0] for _, _, why in WORST])
def test_the_worst_that_fits_an_entry_is_refused_by_its_path(kind: str, body: dict[str, Any], why: str) -> None:
    batch = msgpack.packb([{**STARTED, "kind": kind, "body": body}])
    (refused,) = decode_events(Entry(EVENTS, "7-0", {"batch": batch}), WireLimits(entry_bytes=4 << 20))
    assert isinstance(refused, RefusedMessage)
    assert refused.reason.startswith(why)
    assert len(refused.reason) < 400


@pytest.mark.parametrize(
    ("digits", "number"), [(b"41", 41), (b"", None), (b"-1", None), (b"1_0", None), (b"9" * 18, 10**18 - 1),
                           (b"9" * 19, None), (b"9" * 100_000, None), ("٣".encode(), None)]
)  # fmt: skip
def test_a_count_is_a_short_row_of_digits(digits: bytes, number: int | None) -> None:
    assert whole_number(digits) == number


def test_a_count_that_is_none_is_passed_over_and_the_ingestor_goes_on() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    said = world.outgoing("task_started", {"task": "default/train-0", "node": "n1"})
    world.say(said, sequence=b"9" * 5_000, revision=b"9" * 5_000, tracestate=b"a" * 100_000)
    assert task(drained(ingestor), "train-0")["node"] == "n1"
    assert ingestor.state.sequence == NONE
    assert ingestor.folding.trace_links == ()


def test_a_decision_larger_than_an_event_may_be_is_folded() -> None:
    world = World()
    world.list_fleet()
    evictions = [{"task": f"default/of-a-name-that-is-long-enough-to-fill-it-{at}", "incarnation": 0}
                 for at in range(20_000)]  # fmt: skip
    nominations = ({"task": "default/train-0", "node": "n1"},)
    world.decide("large", evictions=tuple(evictions), nominations=nominations)
    ingestor = world.ingestor()
    assert world.letters() == []
    assert task(ingestor, "train-0")["nominated"] == "n1"
