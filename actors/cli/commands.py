"""The commands of ``clearway``, from options to an exit code. Each imports the module that does its work when run."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from actors.cli.import_commands import imports
from actors.cli.live.commands import live
from actors.cli.options import Commands, FleetName, Inventory, Profile, RayAddress, RedisUrl, SettingsFile, finite
from actors.documents.collector import collect_seldom, collector_paused
from actors.documents.model import LONGEST_S, MOST_CYCLES
from actors.documents.results import refuse_to_replace_inputs, say

app = typer.Typer(
    name="clearway",
    cls=Commands,
    help="Gang-aware preemption and reclaim: make room for whole gangs at the least lost work.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(live)
app.add_typer(imports)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"clearway {version('clearway')}\n")
        raise typer.Exit


@app.callback()
def clearway(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Gang-aware preemption and reclaim: make room for whole gangs at the least lost work."""


@app.command(epilog="Example: clearway simulate cluster.yaml --format text --explain")
def simulate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="A cluster file, YAML or JSON; or manifests: files and folders.")
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(min=0, max=MOST_CYCLES, help="Cycles to run; default 1, or the number that a case states."),
    ] = None,
    profile: Profile = None,
    output: Annotated[str, typer.Option("--format", help="text or json.")] = "json",
    batch: Annotated[
        Path | None,
        typer.Option(
            help="A file with one cluster file in each line (JSONL). A line that is refused is a result with an error, "
            "and the exit code is 0; it is 1 if a line is no JSON."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the result; default standard output.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why as well.")] = False,
    step_s: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=LONGEST_S, help="Seconds from cycle to cycle; default 0, or 60 where a task has a grace_s."
        ),
    ] = None,
) -> None:
    """Decide on a cluster file, and print what was decided.

    All of it happens in this process, without a broker and without Ray.
    """
    if output not in ("text", "json"):
        raise typer.BadParameter(f"expected text or json, found {output!r}", param_hint="--format")
    if (not files) == (batch is None):
        raise typer.BadParameter("expected either one cluster file, or manifests, or --batch")
    if batch is not None and output == "text":
        raise typer.BadParameter("expected json with --batch, found 'text'", param_hint="--format")
    refuse_to_replace_inputs(out, [*(files or ()), *([batch] if batch else ()), *([Path(profile)] if profile else ())])
    with collector_paused() if batch is None else nullcontext():  # the lines of a batch may be any number
        import actors.cli.simulate as command
        from actors.configuration.settings_sources import load_settings

        settings = load_settings()
        most, otherwise = settings.limits.state, settings.policy_profile
        asked = command.SimulateOptions(cycles, profile, step_s, explain, most, otherwise)
        raise typer.Exit(command.run(files or (), asked, output=output, batch=batch, out=out))


@app.command(epilog="Example: clearway run --redis-url redis://broker:6379/0 --fleet prod")
def run(
    redis_url: RedisUrl = None,
    ray_address: RayAddress = None,
    fleet: FleetName = None,
    profile: Profile = None,
    settings: SettingsFile = None,
    shadow: Annotated[
        bool | None, typer.Option("--shadow", help="Decide and record, but have nothing carried out.")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(help="text, or json with one object in each line; default: the settings'.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="debug, info, warning or error; default: the settings'.")
    ] = None,
) -> None:
    """Run the pipeline as a service until it is told to stop."""
    from actors.configuration.settings_sources import load_settings

    told = {"redis_url": redis_url, "ray_address": ray_address, "fleet": fleet, "profile": profile}
    chosen = load_settings(settings, **told, shadow=shadow, log_format=log_format, log_level=log_level)
    collect_seldom()
    from actors.ray_runtime import service  # takes a second: only now, so that settings are refused at once

    raise typer.Exit(service.run(chosen))


@app.command(epilog="Example: clearway demo --seconds 20")
def demo(
    seconds: Annotated[float, typer.Option(min=5.0, callback=finite, help="Seconds in which gangs arrive.")] = 35.0,
    seed: Annotated[int, typer.Option(help="Seed of the simulated fleet and its gangs.")] = 7,
    redis_url: RedisUrl = None,
    ray_address: RayAddress = None,
    profile: Profile = None,
    settings: SettingsFile = None,
    inventory: Inventory = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live view.")] = False,
) -> None:
    """Watch gangs arrive on a full simulated fleet.

    It has 1,523 nodes. Broker, Ray and actors are started, and end with it.
    """
    from actors.configuration.settings_sources import load_settings

    chosen = load_settings(settings, redis_url=redis_url, ray_address=ray_address, profile=profile)
    import actors.cli.demo as command  # as in `run`

    raise typer.Exit(command.run(chosen, seconds=seconds, seed=seed, inventory=inventory, plain=plain))


@app.command(epilog="Example: clearway fleet --redis-url redis://broker:6379/0 --fleet demo")
def fleet(
    redis_url: RedisUrl = None,
    name: FleetName = None,
    seed: Annotated[int, typer.Option(help="Seed of the fleet's load and of the gangs that arrive.")] = 7,
    every_s: Annotated[
        float, typer.Option(min=0.0, callback=finite, help="Seconds between gangs; 0: none arrive.")
    ] = 4.0,
    settings: SettingsFile = None,
    inventory: Inventory = None,
) -> None:
    """Run the simulated fleet as a process of its own.

    It publishes events and carries out decisions, as a connector does.
    """
    from actors.configuration.settings_sources import load_settings
    from actors.fleets import process

    chosen = load_settings(settings, redis_url=redis_url, fleet=name)
    raise typer.Exit(process.run(chosen, seed=seed, every_s=every_s, inventory=inventory))


@app.command(epilog="Example: clearway replay s1 --data recorded")
def replay(
    scenario: Annotated[str, typer.Argument(help="Scenario to replay, s1, s2 or s3; or all, side by side.")],
    data: Annotated[Path, typer.Option(help="Folder of the recorded clusters.")] = Path("../shared/data"),
    event: Annotated[str | None, typer.Option(help="One event of the scenario, such as A; default: all.")] = None,
    priority: Annotated[
        int | None, typer.Option(help="Priority of the arriving gang, where the event leaves it open.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.1, max=48.0, help="Simulated hours to replay, where a scenario has a stream.")
    ] = None,
    profile: Profile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Measures as JSON.")] = False,
) -> None:
    """Replay a recorded cluster and report the measures."""
    import actors.cli.replay as command

    chosen = {"event": event, "priority": priority, "hours": hours}
    raise typer.Exit(command.run(scenario, chosen, data=data, profile=profile, as_json=as_json))


@app.command(epilog="Example: clearway bench --only decide_10k")
def bench(
    only: Annotated[
        list[str] | None, typer.Option(help="One benchmark by name, as decide_10k; may be given again.")
    ] = None,
    peers: Annotated[Path | None, typer.Option(help="Folder with the fleets of other schedulers.")] = None,
    page: Annotated[Path | None, typer.Option(help="Page whose figures are replaced, with plots beside it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Figures as JSON.")] = False,
) -> None:
    """Measure the budgets on this machine."""
    from actors.benchmarks import run as benchmark

    raise typer.Exit(benchmark.run(tuple(only or ()), as_json=as_json, peers=peers, page=page))


@app.command(epilog="Example: clearway schema > protocol.schema.json")
def schema() -> None:
    """Print the JSON Schema of every event and decision."""
    import json

    from actors.protocol.schemas import schema as whole

    say(f"{json.dumps(whole(), indent=1)}\n")


@app.command(epilog="Example: clearway warm")
def warm() -> None:
    """Compile all kernels for this processor.

    It takes some minutes. Where it was not done, the first start does it.
    """
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the compiler swallows the exception that Ctrl-C would become
    import actors.warming.warm as command

    raise typer.Exit(command.run())
