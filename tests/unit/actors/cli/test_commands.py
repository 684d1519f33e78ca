"""The command line itself: what it says of itself, and of what is not there."""

import shlex
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from actors.cli.commands import app
from actors.documents.bounded_files import FileRefused


def test_the_command_says_its_version() -> None:
    said = CliRunner().invoke(app, ["--version"])
    assert (said.exit_code, said.output) == (0, f"clearway {version('clearway')}\n")


def every_command(group: Any) -> Iterator[Any]:
    for command in group.commands.values():
        yield from every_command(command) if hasattr(command, "commands") else [command]


@pytest.mark.parametrize("command", [*every_command(typer.main.get_command(app))], ids=lambda command: command.name)
def test_a_command_says_on_one_line_each_what_it_does_and_how_it_is_called(command: Any) -> None:
    assert not command.get_short_help_str(57).endswith("..."), "longer than the list of commands shows in 80 columns"
    lead, _, example = command.epilog.partition(": clearway ")
    assert (lead, len(command.epilog) <= 76) == ("Example", True)
    words = shlex.split(example.partition(" > ")[0])
    with command.make_context(command.name, words[words.index(command.name) + 1 :]):
        pass


def test_a_flag_is_shown_without_the_name_of_its_type() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--help"]).output
    assert "--explain" in shown
    assert "<bool>" not in shown


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant() -> None:
    said = CliRunner().invoke(app, ["simulat"])
    assert said.exit_code == 2
    assert "simulate" in said.output
    assert "Did you mean" in said.output


def test_a_file_is_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    manifest, out = tmp_path / "node.yaml", tmp_path / "cluster.yaml"
    manifest.write_text("{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 1}}}\n")
    out.write_text("mine\n")
    said = ["import", "k8s", str(manifest), "--out", str(out)]
    refused = CliRunner().invoke(app, said)
    assert isinstance(refused.exception, FileRefused)
    assert str(refused.exception) == f"{out}: expected no file there; --force replaces it"
    assert out.read_text() == "mine\n"
    assert CliRunner().invoke(app, [*said, "--force"]).exit_code == 0
    assert "nodes:" in out.read_text()


def test_every_command_that_writes_a_file_for_users_asks_before_it_replaces_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine\n")
    for words in (["export"], ["import", "kai-config", "x.yaml"], ["import", "volcano-config", "x.yaml"]):
        assert isinstance(CliRunner().invoke(app, [*words, "--out", str(out)]).exception, FileRefused)


@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--seconds", "inf"], ["fleet", "--every-s", "inf"],
        ["top", "--every-s", "inf"], ["check-connector", "--limit-s", "inf"],
    ],
)  # fmt: skip
def test_seconds_without_end_are_refused_with_the_name_of_the_option(words: list[str]) -> None:
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 2
    assert f"Invalid value for '{words[-2]}': expected a finite number, found inf" in said.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("simulate x --cycles abc", "'--cycles': expected a whole number, found \"abc\""),
        ("simulate x --cycles -1", "'--cycles': expected at least 0, found \"-1\""),
        ("simulate x --cycles 9999999999", "'--cycles': expected at most 100000, found \"9999999999\""),
        ("simulate x --step-s nan", "'--step-s': expected at most 1000000000, found \"nan\""),
        ("simulate x --step-s inf", "'--step-s': expected at most 1000000000, found \"inf\""),
        ("simulate x --step-s 1e300", "'--step-s': expected at most 1000000000, found \"1e300\""),
        ("plan x --priority 2 --priority a", "'--priority': expected a whole number, found \"a\""),
        ("import k8s x --now soon", "'--now': expected a number, found \"soon\""),
    ],
)
def test_a_value_that_is_refused_is_told_with_the_option_and_what_was_expected(words: str, told: str) -> None:
    said = CliRunner().invoke(app, words.split())
    assert (said.exit_code, said.output.splitlines()[-1]) == (2, f"Error: Invalid value for {told}")


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["simulate", ""], "simulate"), (["simulate", "--batch="], "--batch="), (["import", "k8s", ""], "k8s"),
        (["simulate", "x", "--out", ""], "--out"), (["get", "queues", "--settings", ""], "--settings"),
    ],
)  # fmt: skip
def test_an_empty_path_is_refused_and_not_read_as_the_current_folder(words: list[str], after: str) -> None:
    said = CliRunner().invoke(app, words)
    told = f"Error: Invalid value: expected a value, found an empty one after '{after}'"
    assert (said.exit_code, said.output.splitlines()[-1]) == (2, told)


def test_a_value_that_ends_with_an_equals_sign_is_not_empty() -> None:
    said = CliRunner().invoke(app, ["get", "queues", "--format=yaml="])
    assert "found 'yaml='" in said.output


@pytest.mark.parametrize("words", [["plan", "-", "--cluster", "-"], ["import", "kai-config", "-", "-"]])
def test_standard_input_is_read_for_one_file_only(words: list[str]) -> None:
    said = CliRunner().invoke(app, words, input="{version: 1}")
    assert isinstance(said.exception, FileRefused)
    assert str(said.exception).startswith("expected - only once")
