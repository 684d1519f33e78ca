"""The example cluster files, and what comes of them, byte for byte.

Where a change of the core is meant to decide otherwise, write the results anew and read the difference:
``clearway simulate config/examples/NAME.yaml --cycles 3 > tests/golden/NAME.json``.
"""

import json
from pathlib import Path

import pytest

from actors.cli.simulate import compact
from actors.cluster_file.plain_data import read_mapping
from tests.support.simulating import simulate

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "config" / "examples"
NAMES = sorted(path.stem for path in HERE.glob("*.json"))


def told(name):
    file = EXAMPLES / f"{name}.yaml"
    return compact(simulate(read_mapping(file.read_text(encoding="utf-8"), file.name), cycles=3)) + "\n"


def stored(name):
    return (HERE / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_the_bytes_that_are_stored(name):
    assert told(name) == stored(name)


def first_cycle(name):
    return json.loads(stored(name))["cycles"][0]


def victims(name):
    return sorted(entry["task"].removeprefix("default/") for entry in first_cycle(name)["evictions"])


def test_job_a_gives_its_surplus_and_job_b_is_left_alone():
    assert victims("gang-preempt") == ["job-a-3", "job-a-4", "notebook-1"]


def test_guests_and_what_is_over_go_and_no_queue_falls_below_what_it_deserves():
    went = victims("queue-reclaim")
    assert [name for name in went if name.startswith("student")] == [f"student-{at}" for at in range(4)]
    assert [name for name in went if not name.startswith("student")] == ["sweep-2", "sweep-3"]


def test_each_replica_lies_in_one_block_and_all_of_them_under_one_spine():
    cycle = first_cycle("topology")
    at = {
        entry["task"].removeprefix("default/"): entry["node"] for entry in [*cycle["nominations"], *cycle["bindings"]]
    }
    nodes = [{at[f"replica-{replica}-{task}"] for task in range(4)} for replica in range(2)]
    assert nodes == [{"m1", "m2"}, {"m4"}]
    assert len(victims("topology")) == 1


def test_a_whole_card_is_made_of_one_card():
    assert victims("cards") == ["notebook-b"]
    assert first_cycle("cards")["nominations"] == [{"task": "default/trainer", "node": "node-1", "card": "gpu-1"}]


def test_all_of_them_are_here():
    assert NAMES == ["cards", "gang-preempt", "queue-reclaim", "topology"]
