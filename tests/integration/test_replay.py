"""Recorded clusters through the pipeline: a small folder of their shape always, the recordings where they lie."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.cli.main import main
from actors.cli.replay import run
from actors.configuration.profiles import load_profile
from actors.replays import s1
from actors.replays.fewest import fewest
from actors.replays.lingjun import open_stream
from actors.replays.openb import WaitingGang, open_placed
from actors.replays.report import ReplayReport
from actors.replays.rules import broken_by, broken_gangs, in_one_domain, needless, overfull, starting_freely
from actors.replays.s2 import S2
from actors.replays.s3 import S3
from actors.replays.streams.lives import evicted, unlived
from pipeline.cluster.tables import PHASE_RUNNING
from pipeline.decision.decided import carried_out
from pipeline.decision.statement import statement
from tests.support.recordings import small_recordings

RECORDINGS = Path(__file__).parents[3] / "shared" / "data"
POLICY = load_profile("default")
TOGETHER, ONE_BY_ONE = (load_profile(name).match_policy for name in ("default", "koordinator"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small folder, written once."""
    return small_recordings(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(params=["small", *(["recorded"] if RECORDINGS.is_dir() else [])])
def folder(request: pytest.FixtureRequest, small: Path) -> Path:
    """The small folder, and the recordings where there are any."""
    return small if request.param == "small" else RECORDINGS


# -- S1 ----------------------------------------------------------------------------------------------------------------


def event(folder: Path, name: str, priority: int | None = None) -> dict[str, Any]:
    """The one row of an event's report; nothing was broken."""
    report = s1.replay(folder, POLICY, name, priority)
    assert report.broken == ()
    (row,) = report.rows
    return dict(row)


def test_sixty_four_nodes_are_refused_to_who_may_take_too_little(folder: Path) -> None:
    row = event(folder, "A", 2)
    assert (row["decision"], row["reason"]) == ("declined", "even all legal evictions would leave too few places")
    offers = {offer["domain"]: offer["workers"] for offer in row["offers"]}
    assert offers == ({"A-P10": 16, "A-P12": 4} if folder == RECORDINGS else {"P1": 3})


def test_sixty_four_nodes_are_cleared_for_who_may_take_enough(folder: Path) -> None:
    row = event(folder, "A", 3)
    assert (row["decision"], row["evictions_without_placement"], row["partial_gangs"]) == ("placed", 0, 0)
    assert row["domain"] == ("A-P10" if folder == RECORDINGS else "P1")
    assert row["could_have_stayed"] == 0
    assert row["victims"] == row["gpu_victims"]


def test_eight_nodes_are_cleared_in_one_leaf(folder: Path) -> None:
    row = event(folder, "B")
    assert (row["decision"], row["evictions_without_placement"], row["partial_gangs"]) == ("placed", 0, 0)
    assert row["latency"]["runs"] > 1


def test_eleven_gangs_at_once_and_a_leaf_that_fails_leave_nothing_half_done(folder: Path) -> None:
    row = event(folder, "C")
    assert row["decision"] == "11 of 11 gangs placed"
    assert (row["evictions_without_placement"], row["partial_gangs"]) == (0, 0)
    assert row["gangs_hit"] >= 1
    assert row["refused"]["a node takes no tasks any more"] == 1
    assert row["rounds"] > row["first_rounds"]


def test_the_yardstick_is_the_least_there_is_of_the_most_important_class(folder: Path) -> None:
    gang = WaitingGang("gang", 64, "psw", 3)
    placed = open_placed(folder, [gang])
    found = {placed.names.domains[one.domain]: one for one in fewest(placed, gang, *placed.gangs)}
    if folder == RECORDINGS:  # as its notes say
        assert {name: (one.classes or ())[2] for name, one in found.items()} == {"A-P10": 76, "A-P12": 217}
        return
    # P1: three nodes with two BE, and 61 of the others with two BE and one LS each. P2: 64 with four LS each.
    assert found["P1"].classes == (6 + 61 * 2, 0, 61, 0)
    assert found["P2"].classes == (0, 0, 256, 0)
    assert (found["P1"].nodes, found["P2"].nodes) == (70, 69)


def test_a_shared_device_is_held_in_thousandths(small: Path) -> None:
    placed = open_placed(small, [])
    rows = {name: row for row, name in enumerate(placed.names.tasks)}
    assert placed.gpus[rows["default/p003-1"]] == 0.5
    assert placed.hours[rows["default/p000-0"]] == 2.0
    assert np.isnan(placed.hours[rows["default/p001-0"]])


# -- S2 ----------------------------------------------------------------------------------------------------------------


def test_a_gang_of_two_roles_takes_back_what_its_queue_deserves(small: Path) -> None:
    report = S2.replay(small, POLICY, 1.0)
    assert report.broken == ()
    whole, gangs, singles = report.rows
    assert (gangs["class"], gangs["jobs"], gangs["started"], gangs["evictions"]) == ("normal gang", 1, 1, 0)
    assert singles["evictions"] == whole["gangs_evicted"] == 2
    assert whole["evicted_to_requested"] == 1.0
    assert (whole["partial_gangs"], whole["evictions_without_placement"]) == (0, 0)
    # The four devices are missing from the gang's arrival to the next cycle, one minute at most.
    assert whole["gpu_hours_below_deserved"] <= 4 / 60


def test_all_scenarios_are_told_side_by_side(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all", {"hours": 1.0}, data=small, profile=None, as_json=False) == 0
    page = capsys.readouterr().out
    for scenario in ("### S1: ", "### S2: ", "### S3: "):
        assert scenario in page
    assert "| measure | default | volcano |" in page
    assert "| B, 8 x 8 GPUs in one asw, priority 3: least work possible |" in page


def test_a_rule_that_is_broken_in_one_of_all_scenarios_is_in_the_exit_code(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = ReplayReport("s1", "some", [{"cycles": 1}], ())
    torn = replace(right, broken=("a gang is torn",))
    told = [("S1", [right, right]), ("S2", [right, torn]), ("S3", [right, right])]
    monkeypatch.setattr("actors.cli.replay.side_by_side", lambda *_asked: told)
    assert run("all", {"hours": None}, data=small, profile=None, as_json=False) == 1
    assert "| rules broken | volcano: 1 | a gang is torn |" in capsys.readouterr().out


def test_the_least_work_is_what_the_cheapest_nodes_lose(small: Path) -> None:
    gang = WaitingGang("gang", 4, "psw", 3)
    placed = open_placed(small, [gang])
    (first, _) = fewest(placed, gang, placed.gangs[0])
    # Three nodes with eight devices of BE, one with 4.5 of BE and 0.5 of LS, against 32 in all.
    assert first.work is not None
    assert np.allclose(first.work, (28.5 / 32, 0, 0.5 / 32, 0))


# -- S3 ----------------------------------------------------------------------------------------------------------------


def test_the_stream_is_replayed_and_big_gangs_get_their_level(small: Path) -> None:
    report = S3.replay(small, POLICY, 1.5)
    assert report.broken == ()
    aims = report.rows[1]
    # 38 of 40 hosts are taken when a gang of eight comes, and no leaf has eight to spare: low priority must go.
    assert (aims["big_gangs"], aims["placed"], aims["at_their_level"]) == (2, 2, 2)
    classes = {row["class"]: row for row in report.rows[2:]}
    assert (classes["high Pretrain"]["started"], classes["high Pretrain"]["evictions"]) == (1, 0)
    assert classes["low Evaluation"]["evictions"] >= 6
    assert classes["low Evaluation"]["gpu_hours_lost"] > 0


def test_the_first_hour_of_a_stream_breaks_no_rule(folder: Path) -> None:
    report = S3.replay(folder, POLICY, 1.0)
    assert report.broken == ()
    assert report.rows[1]["big_gangs"] == report.rows[1]["at_their_level"] == 1


def test_every_job_is_dormant_until_it_arrives(small: Path) -> None:
    stream = open_stream(small, 7200.0)
    assert not stream.snapshot.podgroups.alive.any()
    assert (np.diff(stream.arrival) >= 0).all()
    assert stream.snapshot.room.idle.min() >= 0


@pytest.mark.parametrize(
    ("came", "refused", "now", "again", "waited_before", "never_refused"),
    [
        (50.0, 100.0, 220.0, 1, 1, 1),  # its taker waited when it started again
        (50.0, 160.0, 220.0, 1, 1, 0),  # and had no right to the room then
        (200.0, -np.inf, 220.0, 1, 0, 0),
        (50.0, 100.0, 720.0, 0, 0, 0),
    ],
)
def test_a_stop_is_counted_apart_where_the_job_that_takes_the_room_waited_already(
    small: Path, came: float, refused: float, now: float, again: int, waited_before: int, never_refused: int
) -> None:
    stream = open_stream(small, 7200.0)
    lives, (victim, taker) = unlived(stream), (0, 1)
    stream.arrival.flags.writeable = True
    stream.arrival[taker] = came
    lives.evicted_at[victim], lives.started[victim], lives.refused_at[taker] = 100.0, 160.0, refused
    rows, places = stream.snapshot.tasks_of(victim), stream.snapshot.tasks_of(taker)
    made = statement("preempt", taker, evictions=rows, nominated=places, nominated_node=np.zeros(len(places), np.int64))
    evicted(stream.snapshot, made, stream, lives, now)
    assert (lives.again[victim], lives.waited_before[victim], lives.never_refused[victim]) == (
        again,
        waited_before,
        never_refused,
    )
    assert lives.evicted_at[victim] == now


# -- the rules are no rubber stamp -------------------------------------------------------------------------------------


def test_a_decision_that_breaks_the_rules_is_noticed(small: Path) -> None:
    placed = open_placed(small, [WaitingGang("gang", 2, "asw", 1)])
    before, (gang,) = placed.snapshot, placed.gangs
    waiting = before.tasks_of(gang)
    row = {name: at for at, name in enumerate(placed.names.tasks)}
    important = np.array([row["default/p139-0"]])
    apart = np.array([0, len(before.nodes) - 1])
    nobody = broken_by(before, statement("preempt", evictions=important), TOGETHER)
    assert nobody == ["a task is evicted for no podgroup"]
    made = statement("preempt", gang, evictions=important, nominated=waiting, nominated_node=apart)
    told = " / ".join(broken_by(before, made, TOGETHER))
    assert "as important as the preemptor" in told
    assert "outside one domain" in told
    assert "promised too often" in told
    moved, places = np.append(waiting, important), np.append(apart, len(before.nodes) - 2)
    made = statement("consolidation", gang, evictions=important, nominated=moved, nominated_node=places)
    assert "as important as the preemptor" not in " / ".join(broken_by(before, made, TOGETHER))
    half = statement("preempt", gang, evictions=important, nominated=waiting[:1], nominated_node=apart[:1])
    assert "1 evictions without a placement" in broken_by(before, half, TOGETHER)
    assert broken_gangs(carried_out(half, before, 0.0), np.array([gang]), starting_freely(before, TOGETHER))
    assert overfull(carried_out(half, before, 0.0))
    assert not in_one_domain(before, apart, 2)


def test_a_gang_that_has_run_may_be_partial_where_its_tasks_start_one_by_one(small: Path) -> None:
    placed = open_placed(small, [WaitingGang("gang", 2, "asw", 1)])
    waits, (gang,) = placed.snapshot, placed.gangs
    ran = replace(waits, podgroups=replace(waits.podgroups, started=np.zeros(len(waits.podgroups))))
    half = statement("allocate", gang, nominated=waits.tasks_of(gang)[:1], nominated_node=np.array([0]))
    partial = f"podgroup {gang}: partial, 1 of 2"
    assert partial in broken_by(waits, half, ONE_BY_ONE)
    assert partial in broken_by(ran, half, TOGETHER)
    assert partial not in broken_by(ran, half, ONE_BY_ONE)
    again = replace(waits, podgroups=replace(waits.podgroups, phase=np.full_like(waits.podgroups.phase, PHASE_RUNNING)))
    assert partial not in broken_by(again, half, ONE_BY_ONE)


def test_a_victim_that_could_have_stayed_is_counted(small: Path) -> None:
    placed = open_placed(small, [WaitingGang("gang", 1, "asw", 3)])
    row = {name: at for at, name in enumerate(placed.names.tasks)}
    node = np.array([placed.names.node_row["n000"]])
    waiting = placed.snapshot.tasks_of(*placed.gangs)
    victims = np.array([row["default/p000-0"], row["default/p000-1"], row["default/p000-2"]])
    made = statement("preempt", *placed.gangs, evictions=victims, nominated=waiting, nominated_node=node)
    assert needless(placed.snapshot, made) == 1  # the one without devices


# -- what is refused ---------------------------------------------------------------------------------------------------


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the program as from a shell; its exit code."""
    monkeypatch.setattr("sys.argv", ["clearway", "replay", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("s9",), "expected one of s1, s2, s3"),
        (("s1", "--event", "D"), "expected one of A, B, C"),
        (("s1", "--priority", "9"), "expected 1 to 4"),
        (("s1", "--hours", "1"), "--hours: expected none in scenario s1"),
        (("s3", "--event", "A"), "--event: expected none in scenario s3"),
        (("all", "--event", "A"), "--event: expected none in scenario all"),
        (("all", "--profile", "kai"), "scenario all: expected neither --profile nor --json"),
        (("all", "--json"), "it is a page of default and volcano"),
        (("s1", "--event", "A"), "expected a readable"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_a_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(monkeypatch, *arguments, "--data", str(tmp_path)) == 2
    assert sentence in capsys.readouterr().err


def test_the_command_prints_its_measures_as_json_or_for_a_reader(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "s1", "--event", "B", "--data", str(small), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scenario"] == "s1"
    assert told["rows"][0]["decision"] == "placed"
    assert command(monkeypatch, "s1", "--event", "A", "--priority", "2", "--data", str(small)) == 0
    assert "no invariant was broken" in capsys.readouterr().out
