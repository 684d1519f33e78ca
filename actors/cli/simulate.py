"""``clearway simulate``: runs the pure pipeline over a cluster file, with a simulated fleet that answers at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from actors.cli.simulated_result import fair_share, final, phases, told_cycle
from actors.cli.simulated_time import SimulatedTime, grace_of
from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping, text_to_read
from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.columns.names import Names
from actors.configuration.profiles import load_profile
from actors.configuration.settings import SettingsRefused
from actors.documents.results import write_out
from actors.documents.state_limits import STATE_LIMITS, StateLimits
from actors.fleets.prompt import started, victims_gone
from actors.imports.manifest_files import is_manifests
from pipeline.cluster.arrays import Bools, Floats
from pipeline.cluster.snapshot import Snapshot
from pipeline.cycle import Cycle, cycle
from pipeline.errors import Refused, StateRefused
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Policy

if TYPE_CHECKING:  # what few simulations need is imported where it is needed
    from actors.imports.fields import Finding


@dataclass(frozen=True)
class Case:
    """A cluster file ready to run: its columns, its names, its policy and its clock.

    Attributes
    ----------
    now
        Seconds since the epoch.
    grace_s: float64[T]
        Seconds that each task takes to end; None: no task states any.
    """

    id: str
    snapshot: Snapshot
    names: Names
    policy: Policy
    now: float
    grace_s: Floats | None = None


@dataclass(frozen=True)
class SimulateOptions:
    """The options of a simulation.

    Attributes
    ----------
    cycles
        How many cycles to run; None: the number that ``expect`` of the case states, else 1.
    profile
        Used instead of the profile of the file.
    step_s
        Seconds from one cycle to the next; see `SimulatedTime`.
    explain
        Whether the result says why.
    most
        Bounds on the size of a cluster file.
    otherwise
        The profile if neither ``profile`` nor the file names one.
    """

    cycles: int | None = None
    profile: str | None = None
    step_s: float | None = None
    explain: bool = False
    most: StateLimits = STATE_LIMITS
    otherwise: str = "default"


def run(files: Sequence[Path], asked: SimulateOptions, *, output: str, batch: Path | None, out: Path | None) -> int:
    """Run a cluster file, manifests, or every line of a batch; 1 if something was left out, or a line is no JSON.

    Raises
    ------
    ClusterFileRefused
        If a file cannot be read or is not valid, or a batch has no line. Of a line of a batch its result says so.
    """
    if batch is not None:
        results = [*_batch(batch, asked)]
        if not results:
            raise ClusterFileRefused(f"{batch}: expected a cluster file in each line, found no line")
        write_out("".join(f"{compact(result)}\n" for result, _ in results), out)
        return 0 if all(read for _, read in results) else 1
    result, findings = _one(files, asked)
    if result["error"] is not None:
        raise ClusterFileRefused(result["error"])
    if output == "json":
        write_out(f"{compact(result)}\n", out)
    else:
        from actors.cli.simulated_words import in_words

        write_out(in_words(result), out)
    if not findings:
        return 0
    from actors.imports.kubernetes.manifests import report

    return report(findings)


def _one(files: Sequence[Path], asked: SimulateOptions) -> tuple[dict[str, Any], list[Finding]]:
    """The result of a cluster file, or of manifests, and findings about what was left out of those."""
    known = {}
    if len(files) == 1 and not files[0].is_dir():
        text = text_to_read(files[0])
        if not is_manifests(text):
            return simulated(read_mapping(text, str(files[0])), asked, f"{files[0]}: "), []
        known[files[0]] = text
    from actors.imports.kubernetes.manifests import cluster_of

    made = cluster_of(files, most=asked.most, known=known)
    return _result(made.document, asked), made.findings


def _batch(batch: Path, asked: SimulateOptions) -> Iterator[tuple[dict[str, Any], bool]]:
    """The result of each line, and whether the line could be read."""
    for number, line in enumerate(text_to_read(batch).split("\n"), 1):
        if line.strip():
            try:
                document = read_mapping(line, f"line {number}")
            except ClusterFileRefused as refusal:
                # Its own lines are numbered from 1, and it has only one.
                yield _refused("", str(refusal).replace(f"line {number}, line 1, ", f"line {number}, ", 1)), False
            else:
                yield simulated(document, asked), True


def compact(result: Mapping[str, Any]) -> str:
    """One line of JSON, always the same bytes for the same result."""
    return msgspec.json.encode(result).decode()


def simulated(document: Mapping[str, Any], asked: SimulateOptions, where: str = "") -> dict[str, Any]:
    """Simulate one cluster file, given as plain data.

    Parameters
    ----------
    where
        What a refusal of the file begins with, such as its name; what is wrong with a profile is not the file's.

    Returns
    -------
    The result as the schema of conformance cases describes it; a refusal is under ``error``.
    """
    try:
        if "version" not in document:
            from actors.cli.rule_tables import answer_of_rule, is_question

            if is_question(document):
                return answer_of_rule(document)
        cluster = read_cluster(document, asked.most)
    except ClusterFileRefused as refusal:
        return _refused(str(document.get("id") or ""), f"{where}{refusal}")
    return _result(cluster, asked, where)


def _result(cluster: ClusterDocument, asked: SimulateOptions, where: str = "") -> dict[str, Any]:
    try:
        case = _case(cluster, asked.profile, asked.otherwise)
        return _run(case, asked.cycles if asked.cycles is not None else _asked_cycles(cluster), asked)
    except (ClusterFileRefused, StateRefused) as refusal:
        return _refused(cluster.id or "", f"{where}{refusal}")
    except (SettingsRefused, Refused) as refusal:
        return _refused(cluster.id or "", str(refusal))


def _refused(name: str, sentence: str) -> dict[str, Any]:
    return {"id": name, "error": sentence, "cycles": [], "final": {}, "phases": {}, "fair_share": {}}


def _asked_cycles(cluster: ClusterDocument) -> int:
    return 1 if cluster.expect is None else cluster.expect.cycles + cluster.expect.stable_cycles


def open_case(
    document: Mapping[str, Any],
    profile: str | None = None,
    most: StateLimits = STATE_LIMITS,
    otherwise: str = "default",
) -> Case:
    """Validate a cluster file within bounds on its size, and compile it to columns.

    Parameters
    ----------
    profile
        Used instead of the profile of the file, if there is one.
    most
        Bounds on the size of the file.
    otherwise
        Used if neither the file nor ``profile`` names one.

    Raises
    ------
    ClusterFileRefused
        If the file is not valid.
    SettingsRefused
        If there is no such profile, or its keys are not valid.
    """
    return _case(read_cluster(document, most), profile, otherwise)


def _case(cluster: ClusterDocument, profile: str | None, otherwise: str) -> Case:
    block = cluster.policy.model_dump(exclude_none=True) if cluster.policy is not None else {}
    named = str(block.pop("profile", otherwise))
    policy = load_profile(named if profile is None else profile, block)
    snapshot, names = compile_cluster(cluster)
    return Case(cluster.id or "", snapshot, names, policy, float(cluster.now), grace_of(cluster))


def _run(case: Case, cycles: int, asked: SimulateOptions) -> dict[str, Any]:
    snapshot, made, time = case.snapshot, [], SimulatedTime(case.now, case.grace_s, asked.step_s)
    why = None
    if asked.explain:
        from actors.cli.simulated_why import Why

        why = Why(case.names)
    for _ in range(cycles):
        now, before = time.now, snapshot
        done = cycle(before, case.policy, now)
        made.append(told_cycle(case.names, done))
        if why is not None:
            why.take(before, done, Host(Context(done.snapshot, case.policy, now)))
        snapshot = answered(done, now, time.ended(done.snapshot), time.now)
    result = {
        "id": case.id,
        "error": None,
        "cycles": made,
        "final": final(case.names, snapshot),
        "phases": phases(case.names, snapshot),
        "fair_share": fair_share(case.names, Context(case.snapshot, case.policy, case.now)),
    }
    return result if why is None else result | {"explain": why.as_data()}


def answered(done: Cycle, now: float, due: Bools | None = None, ended_at: float | None = None) -> Snapshot:
    """The cluster after the fleet's answer: bound tasks run, and tasks that were ending have ended.

    An evicted task waits again under the same name, or is gone if its ``gone_when_evicted`` is set.

    Parameters
    ----------
    due: bool[T]
        Tasks whose grace is over at ``ended_at``; None: all.
    ended_at
        When tasks that were ending have ended, in seconds; None: at ``now``.
    """
    bound = np.concatenate([np.zeros(0, np.int64), *(made.bound for made in done.statements)])
    return victims_gone(started(done.snapshot, bound, now), now if ended_at is None else ended_at, due)
