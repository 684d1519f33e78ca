"""The commands of ``clearway import``, from options to an exit code: files of other schedulers become ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from actors.cli.options import Force

imports = typer.Typer(
    name="import", help="Turn files of other schedulers into files of Clearway.", no_args_is_help=True
)


@imports.command("kai-config", epilog="Example: clearway import kai-config config.yaml --out mine.toml")
def import_kai_config(
    files: Annotated[
        list[Path],
        typer.Argument(help="Configuration (or SchedulingShard, or Helm values), Queues, PodGroups, Topology of KAI."),
    ],
    out: Annotated[Path | None, typer.Option(help="File for the profile; default standard output.")] = None,
    cluster: Annotated[
        Path | None, typer.Option(help="File for the objects; default standard output, if there is no profile.")
    ] = None,
    force: Force = False,
) -> None:
    """Turn a KAI Scheduler configuration into a profile.

    Its objects become a cluster file. Lines that cannot be honoured are named.
    """
    from actors.documents.results import refuse_to_replace
    from actors.imports.kai import config as kai_config

    if not force:
        refuse_to_replace(out, cluster)
    raise typer.Exit(kai_config.run(files, out, cluster))


@imports.command("volcano-config", epilog="Example: clearway import volcano-config scheduler.yaml --out mine.toml")
def import_volcano_config(
    file: Annotated[Path, typer.Argument(help="Volcano's scheduler configuration, alone or in its ConfigMap (YAML).")],
    out: Annotated[Path | None, typer.Option(help="File for the profile; default standard output.")] = None,
    force: Force = False,
) -> None:
    """Turn a Volcano configuration into a profile.

    Where lines cannot be honoured, they are named and nothing is written.
    """
    from actors.documents.results import refuse_to_replace
    from actors.imports.volcano import config as volcano_config

    if not force:
        refuse_to_replace(out)
    raise typer.Exit(volcano_config.run(file, out))


@imports.command("k8s", epilog="Example: clearway import k8s dump.yaml --out cluster.yaml")
def import_k8s(
    paths: Annotated[list[Path], typer.Argument(help="Manifests: YAML or JSON files, folders, dumps of kubectl.")],
    out: Annotated[Path | None, typer.Option(help="File for the cluster file; default standard output.")] = None,
    now: Annotated[
        float | None, typer.Option(help="The clock, seconds since the epoch; default the newest of pods and podgroups.")
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(help="Place only pods of this schedulerName; the others take room. May be given again."),
    ] = None,
    topology_status: Annotated[
        bool, typer.Option("--topology-status", help="Write the ClusterNetworkTopology with its detailStatus instead.")
    ] = False,
    force: Force = False,
) -> None:
    """Turn Kubernetes manifests into a cluster file.

    What has no counterpart is reported (exit code 1); what cannot be read is refused (2).
    """
    from actors.documents.results import refuse_to_replace
    from actors.imports.kubernetes import manifests as k8s

    if not force:
        refuse_to_replace(out)
    raise typer.Exit(k8s.run(paths, out, now=now, schedulers=scheduler or (), topology_status=topology_status))
