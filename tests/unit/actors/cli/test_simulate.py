"""The simulate command: its contract with whoever reads its output."""

import copy
import io
import json
import os
import subprocess

import pytest
from typer.testing import CliRunner

from actors.cli import simulate as command
from actors.cli.commands import app
from actors.cli.main import main
from actors.cli.simulate import SimulateOptions, compact, simulated
from actors.cluster_file.reader import read_cluster
from actors.imports.kubernetes import manifests
from tests.support.clusters import small_file
from tests.support.simulating import simulate

RESULT = {"id", "error", "cycles", "final", "phases", "fair_share"}


def run(*words):
    return CliRunner().invoke(app, ["simulate", *map(str, words)])


def cluster_file():
    """A gang of one that runs, a more important one that waits for its node, and one that fits beside it."""
    node = {"name": "n0", "allocatable": {"cpu": "2500m", "memory": "4Gi", "pods": 10}}
    tasks = [{"name": "low-0", "request": {"cpu": 2}, "status": "Running", "node": "n0"}]
    return {
        "version": 1, "id": "shop", "now": 5, "nodes": [node], "queues": [{"name": "q", "deserved": {"cpu": "1500m"}}],
        "podgroups": [
            {"name": "low", "queue": "q", "tasks": tasks},
            {"name": "high", "queue": "q", "priority": 9, "tasks": [{"name": "high-0", "request": {"cpu": 2}}]},
            {"name": "tiny", "queue": "q", "tasks": [{"name": "tiny-0", "request": {"cpu": "500m"}}]},
        ],
    }  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(cluster_file()), encoding="utf-8")
    return path


def test_the_same_file_gives_the_same_bytes(file):
    assert run(file).stdout_bytes == run(file).stdout_bytes
    assert compact(simulate(copy.deepcopy(small_file()))) == compact(simulate(small_file()))


def test_the_result_has_the_keys_of_the_contract_and_names_what_was_decided(file):
    told = json.loads(run(file, "--cycles", 2, "--format", "json").stdout)
    assert set(told) == RESULT
    assert (told["id"], told["error"]) == ("shop", None)
    first, second = told["cycles"]
    evicted = {"task": "default/low-0", "podgroup": "default/low", "action": "preempt", "preemptor": "default/high"}
    assert first["evictions"] == [evicted]
    assert first["nominations"] == [{"task": "default/high-0", "node": "n0"}]
    assert first["bindings"] == [{"task": "default/tiny-0", "node": "n0"}]
    assert second == {"evictions": [], "nominations": [], "bindings": [{"task": "default/high-0", "node": "n0"}]}
    assert told["final"]["default/low-0"] == {"status": "Pending", "node": None, "nominated_node": None}
    assert told["phases"] == {"default/low": "Inqueue", "default/high": "Running", "default/tiny": "Running"}
    assert told["fair_share"]["q"]["cpu"] == 1.5


def test_a_task_that_is_gone_when_evicted_leaves_nothing_behind():
    document = cluster_file()
    document["podgroups"][0]["tasks"][0]["gone_when_evicted"] = True
    told = simulate(document)
    assert "default/low-0" not in told["final"]


def test_a_task_that_starts_out_terminating_ends_with_the_first_answer():
    document = cluster_file()
    document["podgroups"][0]["tasks"][0]["status"] = "Terminating"
    told = simulate(document)
    assert told["cycles"][0]["evictions"] == []
    assert told["final"]["default/low-0"]["status"] == "Pending"


def test_as_many_cycles_run_as_are_asked_for_or_as_the_case_expects():
    document = cluster_file() | {"expect": {"cycles": 2, "stable_cycles": 3}}
    assert len(simulate(document)["cycles"]) == 5
    assert len(simulate(document, cycles=1)["cycles"]) == 1
    assert len(simulate(cluster_file())["cycles"]) == 1


def test_the_text_says_what_each_cycle_did(file):
    told = run(file, "--cycles", 3, "--format", "text").stdout.splitlines()
    assert told[:4] == [
        "cycle 1", "  evict    default/low-0  (preempt for default/high)", "  bind     default/tiny-0 -> n0",
        "  nominate default/high-0 -> n0",
    ]  # fmt: skip
    assert told[-2:] == ["cycle 3", "  nothing to do"]


def ended(monkeypatch, capsys, *words):
    """Exit code, standard output and error of the program."""
    monkeypatch.setattr("sys.argv", ["clearway", "simulate", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, *capsys.readouterr()


def test_a_refused_file_ends_with_two_and_one_sentence(tmp_path, monkeypatch, capsys):
    path = tmp_path / "wrong.yaml"
    path.write_text("version: 1\nnodes:\n  - {name: n0, colour: red}\n", encoding="utf-8")
    code, out, error = ended(monkeypatch, capsys, path)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert "nodes[0]" in error


@pytest.mark.parametrize("words", [["nowhere.yaml"], [], ["a.yaml", "--batch", "b.jsonl"]])
def test_without_a_file_to_read_it_ends_with_two(words, monkeypatch, capsys):
    code, out, error = ended(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert "Traceback" not in error


def test_the_result_of_one_file_goes_where_it_is_asked_for(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "result.json"
    plain = run(file).stdout
    told = run(file, "--out", out)
    assert (told.exit_code, told.stdout, out.read_text(encoding="utf-8")) == (0, "", plain)
    code, _, error = ended(monkeypatch, capsys, file, "--out", tmp_path / "no" / "folder")
    assert (code, error.count("\n")) == (2, 1)
    assert f"{tmp_path}/no/folder: expected a file that can be written" in error


MANIFESTS = {
    "apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}},
        {"apiVersion": "v1", "kind": "Unheard", "metadata": {"name": "u"}},
    ],
}  # fmt: skip


of_both = pytest.mark.parametrize("made", [cluster_file, lambda: MANIFESTS], ids=["cluster file", "manifests"])


@of_both
def test_a_dash_is_standard_input(made, tmp_path, monkeypatch, capsys):
    path = tmp_path / "input.json"
    path.write_text(json.dumps(made()), encoding="utf-8")
    plain = run(path)
    assert "default/" in plain.stdout
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert ended(monkeypatch, capsys, "-")[:2] == (plain.exit_code, plain.stdout)


@of_both
def test_the_input_is_checked_once(made, tmp_path, monkeypatch):
    checked, path = [], tmp_path / "input.json"
    path.write_text(json.dumps(made()))

    def counted(*given):
        checked.append(given)
        return read_cluster(*given)

    for module in (command, manifests):
        monkeypatch.setattr(module, "read_cluster", counted)
    assert run(path).stdout
    assert len(checked) == 1


@of_both
def test_a_pipe_is_read_once_as_what_is_in_it(made, tmp_path):
    path, pipe = tmp_path / "written.json", tmp_path / "pipe"
    path.write_text(json.dumps(made()), encoding="utf-8")
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", path, pipe]) as writer:
        told = run(pipe)
        writer.kill()
    known = run(path)
    assert "default/" in known.stdout
    assert (told.exit_code, told.stdout) == (known.exit_code, known.stdout)


def test_a_file_that_is_not_there_is_named_with_its_whole_path(tmp_path, monkeypatch, capsys):
    assert f"{tmp_path}/none.yaml" in ended(monkeypatch, capsys, tmp_path / "none.yaml")[2]


def test_a_batch_with_a_broken_line_goes_on(tmp_path):
    batch, out = tmp_path / "cases.jsonl", tmp_path / "results.jsonl"
    wrong = cluster_file() | {"id": "wrong", "nodes": [{"name": "n0"}, {"name": "n0"}]}
    lines = [json.dumps(cluster_file()), "{not json", "", json.dumps(wrong), json.dumps(cluster_file())]
    batch.write_text("\n".join(lines), encoding="utf-8")
    assert run("--batch", batch, "--out", out).exit_code == 1
    told = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(one["id"], one["error"] is None) for one in told] == [
        ("shop", True), ("", False), ("wrong", False), ("shop", True)
    ]  # fmt: skip
    assert told[1]["error"].startswith("line 2, column 2: expected JSON or YAML: ")
    assert told[2]["cycles"] == []
    assert told[0] == told[3]


def test_a_refused_line_of_a_batch_says_so_itself_and_a_batch_without_lines_is_refused(tmp_path, monkeypatch, capsys):
    batch = tmp_path / "cases.jsonl"
    batch.write_text('{"version": 1}\n{"version": 1, "nodes": 3}\n', encoding="utf-8")
    code, out, _ = ended(monkeypatch, capsys, "--batch", batch)
    assert (code, [json.loads(line)["error"] is None for line in out.splitlines()]) == (0, [True, False])
    batch.write_text("\n", encoding="utf-8")
    code, out, error = ended(monkeypatch, capsys, "--batch", batch)
    assert (code, out) == (2, "")
    assert error == f"clearway: {batch}: expected a cluster file in each line, found no line\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_line_feeds_end_the_lines_of_a_batch(tmp_path, ending):
    batch, names = tmp_path / "cases.jsonl", ["a\u2028b", "a\x85b", "a\x0bb"]
    lines = [json.dumps({"version": 1, "id": name}, ensure_ascii=False) for name in names]
    batch.write_bytes(("\ufeff" + ending.join(lines)).encode())
    ended = run("--batch", batch)
    assert (ended.exit_code, [json.loads(line)["id"] for line in ended.stdout.split("\n")[:-1]]) == (0, names)


def test_a_batch_is_not_told_in_words(tmp_path, monkeypatch, capsys):
    batch = tmp_path / "cases.jsonl"
    batch.write_text('{"version": 1}\n', encoding="utf-8")
    code, out, error = ended(monkeypatch, capsys, "--batch", batch, "--format", "text")
    assert (code, out) == (2, "")
    assert "expected json with --batch, found 'text'" in error


def test_a_result_replaces_no_file_that_it_is_made_from(file, tmp_path, monkeypatch, capsys):
    before = file.read_bytes()
    link, folder, mine = tmp_path / "link.json", tmp_path / "folder", tmp_path / "mine.toml"
    link.symlink_to(file)
    mine.write_text("mine")
    folder.mkdir()
    (folder / "node.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n}}")
    for words in (
        [file, "--out", file], [file, "--out", link], ["--batch", file, "--out", link],
        [folder, "--out", folder / "node.yaml"], [file, "--profile", mine, "--out", mine],
    ):  # fmt: skip
        code, out, error = ended(monkeypatch, capsys, *words)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "expected another file than what is read" in error
    assert (file.read_bytes(), mine.read_text()) == (before, "mine")


def test_another_result_may_be_replaced(file, tmp_path):
    out = tmp_path / "results.jsonl"
    assert [run(*words, "--out", out).exit_code for words in ([file], ["--batch", file], ["--batch", file])] == [0] * 3
    assert json.loads(out.read_text())["id"] == "shop"


def test_a_profile_named_on_the_command_line_prevails(file):
    other = json.loads(run(file, "--profile", "volcano").stdout)
    assert [one["action"] for one in other["cycles"][0]["evictions"]] == ["gangpreempt"]


def actions(told):
    return [one["action"] for one in told["cycles"][0]["evictions"]]


def test_the_settings_name_the_profile_where_neither_option_nor_file_does(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLEARWAY_PROFILE", "volcano")
    assert actions(json.loads(run(file).stdout)) == ["gangpreempt"]
    assert actions(json.loads(run(file, "--profile", "default").stdout)) == ["preempt"]
    named = tmp_path / "named.json"
    named.write_text(json.dumps(cluster_file() | {"policy": {"profile": "default"}}), encoding="utf-8")
    assert actions(json.loads(run(named).stdout)) == ["preempt"]
    monkeypatch.setenv("CLEARWAY_PROFILE_PATH", str(tmp_path / "none.toml"))
    code, _, error = ended(monkeypatch, capsys, file)
    assert code == 2
    assert f"profile: expected a readable UTF-8 file, found: [Errno 2] No such file or directory: '{tmp_path}" in error
    assert actions(json.loads(run(file, "--profile", "default").stdout)) == ["preempt"]


def test_what_is_wrong_in_a_cluster_file_is_said_with_the_name_of_the_file(file, tmp_path, monkeypatch, capsys):
    wrong, profile = tmp_path / "wrong.json", tmp_path / "mine.toml"
    wrong.write_text(json.dumps(cluster_file() | {"version": 2}), encoding="utf-8")
    profile.write_text("actions = 1", encoding="utf-8")
    for words, told in (
        ([wrong], f"clearway: {wrong}: version: expected 1, found 2\n"),
        ([file, "--profile", profile], "clearway: mine.toml: actions: expected a list, found 1 (and 1 more)\n"),
    ):
        assert ended(monkeypatch, capsys, *words) == (2, "", told)


def test_a_profile_without_a_name_is_refused(file, monkeypatch, capsys):
    code, out, error = ended(monkeypatch, capsys, file, "--profile", "")
    assert (code, out) == (2, "")
    assert error.endswith("expected a value, found an empty one after '--profile'\n")


def test_without_explain_nothing_changes_and_with_it_there_is_one_key_more(file):
    plain, more = (json.loads(run(file, *words).stdout) for words in ((), ("--explain",)))
    assert set(more) == RESULT | {"explain"}
    assert {key: more[key] for key in plain} == plain


def test_a_decision_is_explained_with_its_price_its_domain_and_its_victims(file):
    told = json.loads(run(file, "--explain", "--cycles", 2).stdout)["explain"]["decisions"]
    made = next(one for one in told if one["action"] == "preempt")
    assert (made["cycle"], made["preemptor"], made["queue"], made["reason"]) == (1, "default/high", "q", "chosen")
    assert made["price"]["victims"] == 1
    assert [(one["podgroup"], one["tasks"]) for one in made["victims"]] == [("default/low", 1)]
    assert made["alternatives"] == []


def test_of_a_podgroup_that_is_not_scheduled_condition_counts_and_attempts_are_told():
    document = cluster_file()
    document["podgroups"][1]["priority"] = 0
    (name, waits), *others = simulate(document, explain=True)["explain"]["podgroups"].items()
    assert (name, others) == ("default/high", [])
    assert (waits["condition"], waits["reason"], waits["unready"]) == ("Unschedulable", "NotEnoughResources", 1)
    assert [one["action"] for one in waits["attempts"]] == ["reclaim", "preempt"]


def test_gangs_that_are_never_searched_for_are_told_as_well():
    document = cluster_file()
    document["podgroups"] += [
        {"name": "few", "queue": "q", "min_available": 2, "tasks": [{"name": "few-0"}]},
        {
            "name": "gated",
            "queue": "q",
            "tasks": [{"name": "gated-0", "request": {"cpu": 1}, "scheduling_gated": True}],
        },
    ]
    told = simulate(document, explain=True)["explain"]["podgroups"]
    assert told["default/few"]["reason"] == "NotEnoughTasks"
    assert (told["default/gated"]["reason"], told["default/gated"]["gated"]) == ("SchedulingGated", 1)


def test_in_text_an_explanation_is_sentences(file):
    told = run(file, "--format", "text", "--explain").stdout
    assert "decision 2 in cycle 1: preempt for default/high (queue q)" in told
    assert "  victim default/low: 1 task broken whole, priority 0\n" in told
    assert (
        "default/low is Unschedulable (NotEnoughTasks): 0 of 1 tasks ready, 1 ending; its minimum of 1 lacks 1" in told
    )


def test_an_evicted_task_ends_when_its_grace_is_over():
    document = cluster_file()
    document["podgroups"][0]["tasks"][0]["grace_s"] = 90
    for step_s, bound in ((None, 2), (30.0, 3), (90.0, 1), (0.0, None)):
        cycles = simulated(document, SimulateOptions(6, step_s=step_s))["cycles"]
        starts = [at for at, one in enumerate(cycles) if {"task": "default/high-0", "node": "n0"} in one["bindings"]]
        assert starts == ([bound] if bound is not None else [])
        assert sum(len(one["evictions"]) for one in cycles) == 1


def test_time_stands_unless_a_task_has_a_grace_or_a_step_is_asked_for():
    quick = cluster_file()
    quick["podgroups"][0]["tasks"][0]["grace_s"] = 0
    assert simulate(quick, 3)["cycles"] == simulate(cluster_file(), 3)["cycles"]
    waits = cluster_file()
    waits["podgroups"][1] |= {"created": 5, "preemption_delay": 100}
    evicting = [
        [len(one["evictions"]) for one in simulated(waits, SimulateOptions(3, step_s=s))["cycles"]] for s in (None, 60)
    ]
    assert evicting == [[0, 0, 0], [0, 0, 1]]


def test_a_task_that_starts_out_terminating_has_its_grace_too():
    document = cluster_file()
    document["podgroups"][0]["tasks"][0] |= {"status": "Terminating", "grace_s": 100}
    cycles = simulate(document, 4)["cycles"]
    assert [len(one["bindings"]) for one in cycles] == [1, 0, 1, 0]


def test_a_cluster_file_may_hold_as_much_as_the_settings_say(file, monkeypatch, capsys):
    monkeypatch.setenv("CLEARWAY_LIMITS__TASKS", "2")
    code, _, error = ended(monkeypatch, capsys, file)
    assert code == 2
    assert "expected at most 2 tasks in all, found 3" in error
