"""The command line itself: what it says of itself, and of what is not there."""

from importlib.metadata import version

from typer.testing import CliRunner

from actors.cli.commands import app


def test_the_command_says_its_version() -> None:
    said = CliRunner().invoke(app, ["--version"])
    assert (said.exit_code, said.output) == (0, f"clearway {version('clearway')}\n")


def test_a_flag_is_shown_without_the_name_of_its_type() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--help"]).output
    assert "--explain" in shown
    assert "<bool>" not in shown


def test_a_misspelt_command_is_answered_with_the_one_that_was_meant() -> None:
    said = CliRunner().invoke(app, ["simulat"])
    assert said.exit_code == 2
    assert "simulate" in said.output
    assert "Did you mean" in said.output
