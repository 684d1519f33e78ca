"""`clearway plan`: what would become of a gang, in each queue and at each priority, on a cluster file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.cli.live.plan import Wish, gang_of, joined, planned, run
from actors.cli.live.planned_words import in_words
from actors.cli.simulate import open_case
from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping
from actors.configuration.settings import Settings, SettingsRefused
from actors.documents.state_limits import STATE_LIMITS
from tests.support.stuck import cluster, full, runs, want

EXAMPLE = Path(__file__).parents[5] / "config" / "examples" / "two_racks.yaml"


def racks() -> dict[str, Any]:
    """The example without its gang that waits, and with a second queue."""
    cluster = dict(read_mapping(EXAMPLE.read_text(), "two_racks.yaml"))
    cluster["podgroups"] = cluster["podgroups"][:2]
    return cluster | {"queues": [*cluster["queues"], {"name": "guest"}]}


def gang(tasks: int, **more: Any) -> dict[str, Any]:
    request = {"cpu": 8, "nvidia.com/gpu": 8}
    said = [{"name": "asked", "count": tasks, "request": request, "status": "Pending"}]
    return {"name": "asked", "queue": "ml", "min_available": tasks, "tasks": said} | more


def of(tasks: int, wish: Wish | None = None, **more: Any) -> dict[str, Any]:
    return planned(joined(racks(), gang(tasks, **more), wish or Wish(), "default", STATE_LIMITS))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """The cluster, and a gang of two."""
    cluster, wanted = tmp_path / "cluster.json", tmp_path / "gang.json"
    cluster.write_text(json.dumps(racks()))
    wanted.write_text(json.dumps(gang(2)))
    return cluster, wanted


def test_a_gang_that_fits_starts_at_once() -> None:
    told = of(1)
    assert (told["starts"], told["evictions"]) == ("at once", [])
    assert told["places"] == [{"task": "default/asked-0", "node": "n3"}]
    assert next(in_words([told])) == "default/asked in queue ml at priority 0 starts at once in r0"


def test_a_gang_that_needs_room_says_at_whose_cost() -> None:
    told = of(3, priority=100, topology={"required": "rack"})
    assert told["starts"] == "after evictions"
    assert {(one["task"], one["node"]) for one in told["evictions"]} == {
        ("default/elastic-1", "n1"),
        ("default/elastic-2", "n2"),
    }
    assert sorted(one["node"] for one in told["places"]) == ["n1", "n2", "n3"]
    lines = list(in_words([told]))
    assert lines[0] == "default/asked in queue ml at priority 100 starts after 2 evictions in r0"
    assert "  evicts default/elastic-1 on n1" in lines
    assert any("price: budgets violated 0, gangs broken 0" in line for line in lines)


def test_a_gang_tells_what_is_evicted_for_another_one_that_starts_with_it() -> None:
    """It said that it starts at once: the older one speaks for both."""
    both = {"gang_group": ["default/older", "default/asked"], "priority": 100}
    older = gang(1, **both) | {"name": "older", "created": 1.0, "phase": "Inqueue"}
    older["tasks"] = [{"name": "older-0", "request": {"cpu": 8, "nvidia.com/gpu": 8}}]
    there = racks()
    there["podgroups"] = [*there["podgroups"], older]
    told = planned(joined(there, gang(2, created=2.0, **both), Wish(), "default", STATE_LIMITS))
    assert (told["starts"], len(told["evictions"]), len(told["places"])) == ("after evictions", 2, 2)
    assert {one["preemptor"] for one in told["decisions"]} == {"default/older"}


@pytest.mark.parametrize("profile", ["default", "kai", "koordinator"])
def test_what_costs_nothing_is_told_in_json_as_well(profile: str) -> None:
    told = planned(joined(racks(), gang(3, priority=100), Wish(), profile, STATE_LIMITS))
    assert told["evictions"]
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@pytest.mark.parametrize(
    ("queue", "priority", "starts"), [("ml", 0, "no"), ("ml", 5, "after evictions"), ("guest", 5, "no")]
)
def test_each_queue_and_priority_is_answered_for(queue: str, priority: int, starts: str) -> None:
    told = of(2, Wish(queue, priority))
    assert (told["queue"], told["priority"], told["starts"]) == (queue, priority, starts)
    if starts == "no":
        lines = list(in_words([told]))
        assert lines[0].endswith(" does not start")
        assert len(lines) > 3, "and why"


def test_a_gang_that_is_there_already_is_refused() -> None:
    with pytest.raises(ClusterFileRefused, match=r"expected each name once, found .default/rigid"):
        of(1, name="rigid")


def test_without_a_cluster_file_and_a_broker_both_are_named(files: tuple[Path, Path]) -> None:
    with pytest.raises(SettingsRefused, match=r"expected a cluster file \(--cluster\) or the broker of the fleet"):
        run(Settings(), files[1], None, [Wish()], profile=None, as_json=False)


def test_a_queue_that_is_not_there_is_refused_with_its_key() -> None:
    with pytest.raises(ClusterFileRefused, match=r"podgroups\[2\]\.queue: "):
        of(1, Wish("nowhere"))


def test_a_file_may_be_the_podgroup_or_a_list_of_one() -> None:
    assert gang_of({"podgroups": [gang(1)]}) == gang_of(gang(1)) == gang(1)
    with pytest.raises(ClusterFileRefused, match="podgroups: expected one podgroup"):
        gang_of({"podgroups": [gang(1), gang(2)]})


def test_the_command_answers_for_every_wish_and_touches_nothing(files: tuple[Path, Path], capsys: Any) -> None:
    cluster, wanted = files
    before = cluster.read_bytes()
    wishes = [Wish("ml", 0), Wish("ml", 5)]
    assert run(Settings(), wanted, cluster, wishes, profile=None, as_json=True) == 1
    assert [one["starts"] for one in json.loads(capsys.readouterr().out)] == ["no", "after evictions"]
    assert run(Settings(), wanted, cluster, wishes[1:], profile=None, as_json=False) == 0
    assert "starts after 1 eviction" in capsys.readouterr().out
    assert cluster.read_bytes() == before


def test_a_cluster_is_checked_and_compiled_once_for_all_queues(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    opened = []
    monkeypatch.setattr("actors.cli.live.plan.open_case", lambda *asked: opened.append(open_case(*asked)) or opened[-1])
    cluster, wanted = files
    wishes = [Wish(queue, priority) for queue in ("guest", "ml") for priority in (0, 5)]
    run(Settings(), wanted, cluster, wishes, profile=None, as_json=True)
    assert json.loads(capsys.readouterr().out) == [json.loads(json.dumps(of(2, wish))) for wish in wishes]
    assert len(opened) == 2 + len(wishes), "once for each priority, and once for each of the answers compared with"
    with pytest.raises(ClusterFileRefused, match=r"^--queue: expected the name of a queue \(guest, ml\), found .nope"):
        run(Settings(), wanted, cluster, [*wishes[:1], Wish("nope", 0)], profile=None, as_json=True)


def test_the_settings_name_the_profile_where_neither_option_nor_cluster_file_does(
    files: tuple[Path, Path], capsys: Any
) -> None:
    cluster, wanted = files
    for settings, profile, action in (
        (Settings(profile="volcano"), None, "gangpreempt"), (Settings(profile="volcano"), "default", "preempt"),
        (Settings(), None, "preempt"),
    ):  # fmt: skip
        assert run(settings, wanted, cluster, [Wish("ml", 5)], profile=profile, as_json=True) == 0
        (told,) = json.loads(capsys.readouterr().out)
        assert next(one["action"] for one in told["decisions"] if one["evicts"]) == action


@pytest.mark.parametrize(
    ("leads", "own", "action"),
    [
        ("volcano", "default", "gangpreempt"),  # as the service that leads decides
        ("mine", "mine.toml", "gangpreempt"),  # which has its profile from the same path
        (None, "volcano", "gangpreempt"),
        (None, "default", "preempt"),
    ],
)
def test_on_a_live_fleet_the_profile_of_the_service_that_leads_is_used(
    leads: str | None, own: str, action: str, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("actors.cli.live.plan._live", lambda _: (racks(), leads))
    mine, wanted = files[0].with_name("mine.toml"), files[1]
    mine.write_text((EXAMPLE.parents[1] / "profiles" / "volcano.toml").read_text())
    settings = Settings(profile_path=mine) if own == mine.name else Settings(profile=own)
    assert run(settings, wanted, None, [Wish("ml", 5)], profile=None, as_json=True) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert next(one["action"] for one in told["decisions"] if one["evicts"]) == action


MISTAKES: list[tuple[dict[str, Any], dict[str, Any], Wish, str]] = [
    (gang(1, queue="nope"), {}, Wish(), "gang.json: queue: expected the name of a queue"),
    ({"podgroups": [gang(1, queue="nope")]}, {}, Wish(), "gang.json: podgroups[0].queue: expected the name of a queue"),
    (gang(1, colour="red"), {}, Wish(), "gang.json: colour: expected one of name, namespace"),
    (gang(1, created=1.7e12), {}, Wish(), "gang.json: created: expected seconds since 1970"),
    ({"podgroups": []}, {}, Wish(), "gang.json: podgroups: expected one podgroup, found 0"),
    (gang(1), {}, Wish("nope"), "--queue: expected the name of a queue"),
    (gang(1), {}, Wish(None, 2**40), "--priority: expected at most 2147483647"),
    (gang(1), {"nodes": 3}, Wish(), "cluster.json: nodes: expected a list, found 3"),
    (gang(1), {"podgroups": 3}, Wish(), "cluster.json: podgroups: expected a list, found 3"),
]


@pytest.mark.parametrize(("asked", "changed", "wish", "sentence"), MISTAKES, ids=[one[-1][:30] for one in MISTAKES])
def test_a_mistake_is_told_by_its_path_in_the_file_that_it_is_in(
    tmp_path: Path, asked: dict[str, Any], changed: dict[str, Any], wish: Wish, sentence: str
) -> None:
    cluster, wanted = tmp_path / "cluster.json", tmp_path / "gang.json"
    cluster.write_text(json.dumps(racks() | changed))
    wanted.write_text(json.dumps(asked))
    with pytest.raises(ClusterFileRefused) as refusal:
        run(Settings(), wanted, cluster, [wish], profile=None, as_json=True)
    assert str(refusal.value).removeprefix(f"{tmp_path}/").startswith(sentence)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"tasks": []}, "it has no task that waits for a node"),
        ({"tasks": [{"name": "done", "status": "Succeeded"}]}, "it has no task that waits for a node"),
        (
            {"min_available": 0, "tasks": [{"name": "wide", "request": {"cpu": 1000}}]},
            "its minimum is met as it is, and no room was found for 1 task beyond it",
        ),
    ],
)
def test_a_gang_that_nothing_holds_back_and_that_does_not_start_is_told_why(asked: dict[str, Any], why: str) -> None:
    told = planned(joined(racks(), gang(1) | asked, Wish(), "default", STATE_LIMITS))
    assert list(in_words([told])) == ["default/asked in queue ml at priority 0 does not start", f"  {why}"]


def test_evictions_of_later_cycles_are_told_too() -> None:
    """In the first cycle another task is still ending, and no more may end at one time."""
    gone = runs("gone", "n0", gpus=0, of_task={"status": "Terminating"})
    limit = {"plugins": {"evictionbudget": {"arguments": {"at_once": 1}}}}
    told = planned(open_case(cluster(*full(), gone, want(1), policy=limit), "default"))
    assert told["starts"] == "after evictions"
    assert next(in_words([told])) == "default/want in queue a at priority 9 starts after 1 eviction"
    assert [one["node"] for one in told["evictions"]] == [one["node"] for one in told["places"]]


def test_a_task_that_only_moves_is_told_with_where_it_goes() -> None:
    there = cluster(*full(gpus=4))
    told = planned(joined(there, want(1), Wish(), "kai", STATE_LIMITS))
    (moved,) = told["evictions"]
    assert {moved["node"], moved["to"]} == {"n0", "n1"}
    lines = list(in_words([told]))
    assert lines[0] == "default/want in queue a at priority 9 starts after 1 move"
    assert lines[1] == f"  moves {moved['task']} from {moved['node']} to {moved['to']}"
    (made,) = [one for one in told["decisions"] if one["evicts"]]
    assert (made["moves"], made["victims"][0]["moves"]) == (1, 1)
    assert f"    victim {made['victims'][0]['podgroup']}: 1 task to another place, priority 1" in lines
    assert "    evicts 1 (1 to another place), promises 2, starts 0; its minimum needed 1" in lines
