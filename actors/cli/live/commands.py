"""The commands that look at a live fleet, from options to an exit code. Each imports the module that does its work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from actors.cli.options import BrokerUrl, FleetName, Force, Profile, SettingsFile, among, finite
from actors.documents.results import refuse_to_replace

live = typer.Typer()


@live.command(epilog="Example: clearway explain default/train --redis-url redis://broker:6379/0")
def explain(
    name: Annotated[
        str | None, typer.Argument(help="namespace/name of a podgroup or a task; default: the newest decisions.")
    ] = None,
    redis_url: BrokerUrl = None,
    fleet: FleetName = None,
    settings: SettingsFile = None,
    count: Annotated[int, typer.Option(min=1, help="How many decisions to show.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, with all that waits.")] = False,
) -> None:
    """Say why a podgroup waits, was placed, or lost tasks.

    It reads the recorded decisions: which victims were taken, which domains were not, and why.
    """
    import actors.cli.live.explain as command
    from actors.configuration.settings_sources import load_settings

    chosen = load_settings(settings, redis_url=redis_url, fleet=fleet)
    raise typer.Exit(command.run(chosen, name, count=count, as_json=as_json))


@live.command(epilog="Example: clearway plan gang.yaml --cluster cluster.yaml --priority 200")
def plan(
    gang: Annotated[Path, typer.Argument(help="A podgroup (YAML or JSON), as in a cluster file; - is standard input.")],
    cluster: Annotated[
        Path | None, typer.Option(help="A cluster file to plan on; default: the live state of the fleet.")
    ] = None,
    queue: Annotated[list[str] | None, typer.Option(help="In this queue; may be given again; default its own.")] = None,
    priority: Annotated[
        list[int] | None, typer.Option(help="At this priority; may be given again; default its own.")
    ] = None,
    redis_url: BrokerUrl = None,
    fleet: FleetName = None,
    profile: Profile = None,
    settings: SettingsFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON list, a result for each wish.")] = False,
) -> None:
    """Say whether a gang would start, and at whose cost.

    It says so for each queue and priority that is asked for, and changes nothing.
    """
    import actors.cli.live.plan as command
    from actors.configuration.settings_sources import load_settings

    chosen = load_settings(settings, redis_url=redis_url, fleet=fleet)
    queues, priorities = tuple(queue or ()) or (None,), tuple(priority or ()) or (None,)
    wishes = [command.Wish(one, urgency) for one in queues for urgency in priorities]
    raise typer.Exit(command.run(chosen, gang, cluster, wishes, profile=profile, as_json=as_json))


@live.command(epilog="Example: clearway get gangs --redis-url redis://broker:6379/0")
def get(
    kind: Annotated[str, typer.Argument(help="queues, gangs, nodes, reservations, decisions or services.")],
    name: Annotated[str | None, typer.Argument(help="Only those of this name, with or without the namespace.")] = None,
    output: Annotated[str, typer.Option("--format", "-o", help="table, json or yaml.")] = "table",
    count: Annotated[int | None, typer.Option(min=1, help="How many at most.")] = None,
    redis_url: BrokerUrl = None,
    fleet: FleetName = None,
    settings: SettingsFile = None,
) -> None:
    """List what there is in a live fleet."""
    import actors.cli.live.get as command
    from actors.configuration.settings_sources import load_settings

    among(kind, command.KINDS, "KIND")
    among(output, command.FORMATS, "--format")
    chosen = load_settings(settings, redis_url=redis_url, fleet=fleet)
    raise typer.Exit(command.run(chosen, kind, output=output, count=count, name=name))


@live.command(epilog="Example: clearway top --redis-url redis://broker:6379/0")
def top(
    every_s: Annotated[float, typer.Option(min=0.2, callback=finite, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, without clearing the screen.")] = False,
    redis_url: BrokerUrl = None,
    fleet: FleetName = None,
    settings: SettingsFile = None,
) -> None:
    """Watch a live fleet on one screen.

    It shows services, queues, what waits and why, and reservations.
    """
    import actors.cli.live.top as command
    from actors.configuration.settings_sources import load_settings

    chosen = load_settings(settings, redis_url=redis_url, fleet=fleet)
    raise typer.Exit(command.run(chosen, every_s=every_s, once=once))


@live.command(epilog="Example: clearway export --redis-url redis://broker:6379/0 --out now.yaml")
def export(
    redis_url: BrokerUrl = None,
    fleet: FleetName = None,
    settings: SettingsFile = None,
    out: Annotated[Path | None, typer.Option(help="Where the cluster file goes; default standard output.")] = None,
    force: Force = False,
) -> None:
    """Write the live state as a cluster file.

    The commands simulate and plan read it.
    """
    import actors.cli.live.get as command
    from actors.configuration.settings_sources import load_settings

    if not force:
        refuse_to_replace(out)
    raise typer.Exit(command.export(load_settings(settings, redis_url=redis_url, fleet=fleet), out))


@live.command("check-connector", epilog="Example: clearway check-connector --redis-url redis://broker:6379/0")
def check_connector(
    redis_url: BrokerUrl = None,
    fleet: FleetName = None,
    settings: SettingsFile = None,
    limit_s: Annotated[float, typer.Option(min=0.1, callback=finite, help="Seconds that an answer may take.")] = 15.0,
) -> None:
    """Say which rules of the protocol a connector breaks.

    It plays Clearway's part to it: one running task is evicted and bound again.
    """
    from actors.configuration.settings_sources import load_settings
    from actors.verification import connector_check

    raise typer.Exit(connector_check.run(load_settings(settings, redis_url=redis_url, fleet=fleet), limit_s))
