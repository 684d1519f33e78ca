"""Every command of ours that compose starts is one that our own command line understands."""

from pathlib import Path

import pytest
import typer
import yaml

from actors.cli.commands import app

COMPOSE = yaml.safe_load((Path(__file__).parents[3] / "docker-compose.yml").read_text())
COMMANDS = {
    name: service["command"]
    for name, service in COMPOSE["services"].items()
    if service.get("command", [""])[0] == "clearway"
}


def test_the_pipeline_its_standby_and_the_fleet_are_started_by_our_command() -> None:
    assert set(COMMANDS) == {"pipeline", "standby", "fleet"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_command_line_understands_the_command(name: str) -> None:
    _, subcommand, *arguments = COMMANDS[name]
    group = typer.main.get_command(app)
    with group.commands[subcommand].make_context(subcommand, list(arguments)) as context:
        assert context.params["redis_url"] == "redis://redis:6379/0"
