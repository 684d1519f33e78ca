"""Lines of a batch that ask one rule of the profile `kai`."""

import json

import pytest
from typer.testing import CliRunner

from actors.cli.commands import app
from tests.support.clusters import small_file
from tests.support.simulating import simulate

DIVISION = {
    "id": "d", "total": 41, "k": 0.5,
    "queues": [["q0", 50, 1, 1, None, 3, 1, 0], ["q1", 100, 0, None, None, 2, 23, 0], ["q2", 50, 2, 0, 5, 4, 6, 0]],
}  # fmt: skip
NONE, DESERVED, SHARE = [0, 0, 0], [None, None, 2], [None, None, 2]
RECLAIM = {
    "id": "r", "multiplier": 1, "reclaimer": "a", "preemptible": True, "request": [0, 0, 2],
    "queues": [["a", None, DESERVED, SHARE, NONE, NONE], ["b", None, DESERVED, SHARE, [4, 4, 4], NONE]],
    "victims": {"b": [[1, 1, 1], [1, 1, 1]]},
}  # fmt: skip


def test_a_division_is_answered_in_the_order_of_its_queues():
    assert simulate(DIVISION) == {"id": "d", "error": None, "fair_share": [1, 23, 5]}


def test_a_reclaim_is_answered_by_both_gates():
    assert simulate(RECLAIM) == {"id": "r", "error": None, "can_reclaim": True, "allowed": True}
    assert simulate(RECLAIM | {"victims": {"b": [[1, 1, 2], [1, 1, 1]]}})["allowed"] is False
    assert simulate(RECLAIM | {"request": [0, 0, 3]})["can_reclaim"] is False


def test_a_batch_holds_lines_of_all_kinds(tmp_path):
    batch = tmp_path / "batch.jsonl"
    lines = DIVISION, RECLAIM, small_file()
    batch.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    answers = CliRunner().invoke(app, ["simulate", "--batch", str(batch)]).stdout.splitlines()
    told = [json.loads(line) for line in answers]
    assert told[0].keys() == {"id", "error", "fair_share"}
    assert told[1].keys() == {"id", "error", "can_reclaim", "allowed"}
    assert told[2]["cycles"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (DIVISION | {"total": -1}, "total: expected at least 0, found -1"),
        (DIVISION | {"queues": [["q0", 50, 1]]}, "queues[0]"),
        (DIVISION | {"strange": 1}, "strange: expected one of id, total"),
        (RECLAIM | {"reclaimer": "c"}, "reclaimer: expected the name of one of the queues"),
        (RECLAIM | {"victims": {"c": []}}, "victims: expected the name of one of the queues"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_its_key(line, sentence):
    assert sentence in simulate(line)["error"]


def test_queues_that_are_their_own_ancestors_are_refused():
    rows = [["a", "b", *RECLAIM["queues"][0][2:]], ["b", "a", *RECLAIM["queues"][1][2:]]]
    assert "expected queues that form a tree" in simulate(RECLAIM | {"queues": rows})["error"]
