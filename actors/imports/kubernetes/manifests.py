"""``clearway import k8s``: manifests of Kubernetes and its schedulers become a cluster file, or say why they cannot.

What could change a decision and has no counterpart is reported with file, line and path. Exit codes: 0 done; 1 done,
and something was left out; 2 refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_cluster
from actors.documents.results import complain, write_out
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.imports.fields import FieldRefused, Finding
from actors.imports.kubernetes.cluster import Cluster
from actors.imports.kubernetes.network.topology_status import detail_status
from actors.imports.manifest_files import read_manifests, sentence

DONE, LEFT_OUT = 0, 1


def run(
    paths: Sequence[Path], out: Path | None, *, now: float | None, schedulers: Sequence[str], topology_status: bool
) -> int:
    """Write the cluster file, or the ClusterNetworkTopology with its status, to ``out`` or standard output."""
    if topology_status:
        document, findings = network_of(paths), list[Finding]()
    else:
        document, _, findings = cluster_of(paths, now=now, schedulers=schedulers)
    text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    write_out(text, out)
    return report(findings)


def report(findings: Sequence[Finding]) -> int:
    """Write the findings to standard error; the exit code, 1 if something was left out."""
    lines = (("left out: " if finding.left_out else "note: ") + sentence(finding) for finding in findings)
    complain(dict.fromkeys(lines))
    return LEFT_OUT if any(finding.left_out for finding in findings) else DONE


class Imported(NamedTuple):
    """The cluster file of manifests, as plain data and checked, and a finding for each part that is not in it."""

    plain: dict[str, Any]
    document: ClusterDocument
    findings: list[Finding]


def cluster_of(
    paths: Sequence[Path],
    *,
    now: float | None = None,
    schedulers: Sequence[str] = (),
    most: StateLimits = STATE_LIMITS,
    known: Mapping[Path, str] | None = None,
) -> Imported:
    """The cluster file of manifests.

    Parameters
    ----------
    now
        The clock, seconds since the epoch; None: as `Cluster.document` says.
    schedulers
        Values of ``spec.schedulerName`` whose pods are placed; the others only take room. Empty: all are placed.
    most
        What the cluster file may hold.
    known
        Texts of files that were read before: a pipe has its text only once.

    Raises
    ------
    ClusterFileRefused
        If an object cannot be read as the kind that it states, or the cluster file would not be valid; the message has
        file, line and path.
    """
    try:
        cluster = _read(paths, known)
        plain = cluster.document(now=now, schedulers=schedulers)
    except FieldRefused as refusal:
        raise ClusterFileRefused(sentence(refusal.finding)) from refusal
    try:
        return Imported(plain, read_cluster(plain, most), cluster.findings)
    except ClusterFileRefused as refusal:
        told = f"in the cluster file made of {{}}, {refusal}"
        source = cluster.source_of(plain, refusal.where)
        if source is None:
            raise ClusterFileRefused(told.format("the manifests")) from refusal
        raise ClusterFileRefused(sentence(Finding(source.manifest, (), told.format("it")))) from refusal


def network_of(paths: Sequence[Path]) -> dict[str, Any]:
    """The ClusterNetworkTopology of manifests, with the status that follows from the labels of their nodes.

    Raises
    ------
    ClusterFileRefused
        If there is no ClusterNetworkTopology, or something cannot be read.
    """
    try:
        cluster = _read(paths)
    except FieldRefused as refusal:
        raise ClusterFileRefused(sentence(refusal.finding)) from refusal
    found = cluster.network()
    if found is None:
        raise ClusterFileRefused("expected a ClusterNetworkTopology among the manifests, found none")
    labels = {name: node.get("labels", {}) for name, node in cluster.nodes.items()}
    return {**found.about.data, "status": {"detailStatus": detail_status(found.levels, labels)}}


def _read(paths: Sequence[Path], known: Mapping[Path, str] | None = None) -> Cluster:
    manifests, findings = read_manifests(paths, known or {})
    cluster = Cluster(findings)
    cluster.read(manifests)
    return cluster
