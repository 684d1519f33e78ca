"""What KAI Scheduler takes for granted of its podgroups is said in the cluster file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kai_objects import imported


def classed(name: str | None, **spec: Any) -> str:
    own = {} if name is None else {"priorityClassName": name}
    return yaml.safe_dump({"kind": "PodGroup", "metadata": {"name": "p"}, "spec": {"queue": "q", **own, **spec}})


@pytest.mark.parametrize(("value", "spared"), [(99, False), (100, True), (2**31 - 1, True)])
def test_a_podgroup_of_a_class_of_100_or_more_is_spared(value: int, spared: bool, tmp_path: Path) -> None:
    named = f"kind: PriorityClass\nmetadata: {{name: c}}\nvalue: {value}\n"
    queue = "kind: Queue\nmetadata: {name: q}\n"
    (made,) = imported(tmp_path, named, queue, classed("c"))["podgroups"]
    assert (made["priority_class"], made.get("preemptible", True)) == ("c", not spared)
    (made,) = imported(tmp_path, named, queue, classed("c", preemptibility="preemptible"))["podgroups"]
    assert made["preemptible"] is True


def test_a_podgroup_without_a_class_has_the_usual_priority(tmp_path: Path) -> None:
    queue, usual = (
        "kind: Queue\nmetadata: {name: q}\n",
        "kind: PriorityClass\nmetadata: {name: c}\nglobalDefault: true\nvalue: 125\n",
    )
    (made,) = imported(tmp_path, queue, classed(None))["podgroups"]
    assert (made["priority"], "preemptible" in made) == (50, False)
    (made,) = imported(tmp_path, queue, classed(None), usual)["podgroups"]
    assert (made["priority"], made["preemptible"]) == (125, False)


@pytest.mark.parametrize(("said", "seconds"), [("10m", 600.0), ("0s", 0.0), ("-5s", 0.0)])
def test_a_podgroup_keeps_the_time_that_it_must_wait_before_others_go_for_it(
    said: str, seconds: float, tmp_path: Path
) -> None:
    queue = "kind: Queue\nmetadata: {name: q}\n"
    (made,) = imported(tmp_path, queue, classed(None, preemptionDelay=said))["podgroups"]
    assert made["preemption_delay"] == seconds
