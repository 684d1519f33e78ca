"""What has just started is left alone: the cool-down of a task, and the minimum runtime that a queue grants."""

from typing import Any

import pytest

from actors.documents.durations import seconds_of
from tests.support.small_clusters import named, played, podgroup, world

NOW = 10_000.0
COOLDOWN = {"volcano.sh/cooldown-time": "10m"}
#: One action of each path: whole gangs and task by task, in the queue and across queues.
PATHS = [
    ("default", "preempt"), ("default", "reclaim"), ("volcano", "gangpreempt"), ("volcano", "gangreclaim"),
    ("volcano", "preempt"), ("volcano", "reclaim"),
]  # fmt: skip


def evicted(
    path: tuple[str, str], queue: dict[str, Any] | None = None, *, labels: dict[str, str] | None = None, **victim: Any
) -> bool:
    """Whether the one task that runs is evicted for a more important one, in its queue or from another."""
    profile, action = path
    queues = {"own": {"deserved": {"cpu": 1}}, "other": {"deserved": {"cpu": 0}, **(queue or {})}}
    task = {"name": "v", "request": {"cpu": 1}, "status": "Running", "node": "n", "labels": labels or {}}
    task["created"] = victim.pop("task_created", 0.0)
    plugins = {"cdp": {}, "minruntime": {}, "gang": {"enabled": {"preemptable": False}}}
    held = {"name": "victim", "queue": "other", "min_available": 0, "phase": "Running", "tasks": [task], **victim}
    asker = "own" if "reclaim" in action else "other"
    wants = podgroup("preemptor", [{"cpu": 1}], queue=asker, priority=1, phase="Inqueue")
    policy = {"profile": profile, "actions": [action], "plugins": plugins}
    return bool(played(world({"n": {"cpu": 1}}, queues, [held, wants], now=NOW, **policy))[0]["evictions"])


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
class TestInEveryPath:
    def test_a_task_is_spared_until_its_cool_down_is_over(self, path: tuple[str, str]) -> None:
        assert not evicted(path, labels=COOLDOWN, started=NOW - 599)
        assert evicted(path, labels=COOLDOWN, started=NOW - 600)
        assert evicted(path, started=NOW)

    def test_a_queue_grants_its_podgroups_a_minimum_runtime(self, path: tuple[str, str]) -> None:
        granted = {"reclaim_min_runtime" if "reclaim" in path[1] else "preempt_min_runtime": 60}
        assert not evicted(path, granted, started=NOW - 59)
        assert evicted(path, granted, started=NOW - 60)

    def test_a_minimum_runtime_against_the_one_is_none_against_the_other(self, path: tuple[str, str]) -> None:
        other = {"preempt_min_runtime" if "reclaim" in path[1] else "reclaim_min_runtime": 60}
        assert evicted(path, other, started=NOW - 1)


def test_a_task_whose_start_is_unknown_cools_down_from_its_creation() -> None:
    assert not evicted(PATHS[0], labels=COOLDOWN, task_created=NOW - 599)
    assert evicted(PATHS[0], labels=COOLDOWN, task_created=NOW - 600)


def test_who_replaces_an_evicted_task_cools_down_although_the_gang_is_old() -> None:
    assert not evicted(PATHS[0], labels=COOLDOWN, task_created=NOW - 1, started=NOW - 9_000)


def test_a_cool_down_that_cannot_be_read_never_ends() -> None:
    assert not evicted(PATHS[0], labels={"volcano.sh/cooldown-time": "soon"}, started=0.0)


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize(
    ("elastic", "minimum", "victims"), [(True, 1, ["victim-1", "victim-2"]), (True, 2, []), (False, 1, [])]
)
def test_task_by_task_a_young_podgroup_loses_no_more_than_its_surplus(
    action: str, elastic: bool, minimum: int, victims: list[str]
) -> None:
    queues = {"own": {"deserved": {"cpu": 3}}, "other": {"deserved": {"cpu": 0}, f"{action}_min_runtime": 60}}
    held = podgroup("victim", [{"cpu": 1}] * 3, "n", queue="other", min_available=minimum, started=NOW - 59)
    asker = "other" if action == "preempt" else "own"
    wants = podgroup("preemptor", [{"cpu": 1}] * 2, queue=asker, priority=1, phase="Inqueue", min_available=2)
    by_task = {"preemptable": False, "reclaimable": False}
    plugins = {"minruntime": {"arguments": {"elastic": elastic}}, "gang": {"enabled": by_task}}
    document = world({"n": {"cpu": 3}}, queues, [held, wants], now=NOW, profile="volcano", plugins=plugins)
    document["policy"]["actions"] = [action]
    assert named(played(document)[0]["evictions"]) == victims


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
@pytest.mark.parametrize("cools", [False, True])
def test_a_podgroup_that_started_at_an_unknown_time_is_not_young_once_it_loses_a_task(
    path: tuple[str, str], cools: bool
) -> None:
    profile, action = path
    times = {"preempt_min_runtime": 60, "reclaim_min_runtime": 60}
    queues = {"own": {"deserved": {"cpu": 4}}, "other": {"deserved": {"cpu": 0}, **({} if cools else times)}}
    held = podgroup("victim", [{"cpu": 1}] * 4, "n", queue="other", min_available=1)
    for task in held["tasks"] if cools else ():
        task["labels"] = COOLDOWN
    asker = "own" if "reclaim" in action else "other"
    wants = podgroup("preemptor", [{"cpu": 1}] * 2, queue=asker, priority=1, phase="Inqueue", min_available=2)
    policy = {"profile": profile, "actions": [action], "plugins": {"cdp": {}, "minruntime": {}}}
    document = world({"n": {"cpu": 4}}, queues, [held, wants], now=NOW, **policy)
    assert named(played(document)[0]["evictions"]) == ["victim-2", "victim-3"]


def test_a_task_without_a_cool_down_has_none_whatever_the_clock_says_that_started_it() -> None:
    cooling, other = (podgroup(name, [{"cpu": 1}], "n", started=NOW + 1, phase="Running") for name in ("a", "b"))
    cooling["tasks"][0]["labels"] = COOLDOWN
    wants = podgroup("preemptor", [{"cpu": 1}], priority=1, phase="Inqueue")
    document = world({"n": {"cpu": 2}}, {"q": {}}, [cooling, other, wants], now=NOW, plugins={"cdp": {}})
    assert named(played(document)[0]["evictions"]) == ["b-0"]


def test_a_podgroup_that_was_never_whole_has_no_runtime_to_protect() -> None:
    assert evicted(PATHS[0], {"preempt_min_runtime": 1e6})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600.0), ("1h2m3.5s", 3723.5), ("250ms", 0.25), ("0", 0.0), ("", None), ("10", None), ("-1s", None)],
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
