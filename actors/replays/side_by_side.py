"""All scenarios under several profiles, side by side, as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from actors.configuration.profiles import load_profile
from actors.replays import s1
from actors.replays.report import ReplayReport, said
from actors.replays.s2 import S2
from actors.replays.s3 import S3

PROFILES = ("default", "volcano")
#: Hours of the whole stream of S3.
S3_HOURS = 45.0


def side_by_side(folder: Path, hours: float | None) -> Iterator[tuple[str, list[ReplayReport]]]:
    """The name of each scenario with its reports, one for each of ``PROFILES``, as soon as they are measured.

    Parameters
    ----------
    hours
        Hours of each stream; None: all.

    Raises
    ------
    RecordingRefused
        If a recording cannot be used.
    """
    policies = [load_profile(name) for name in PROFILES]
    yield "S1", [s1.replay(folder, policy, None, None) for policy in policies]
    yield "S2", [S2.replay(folder, policy, hours) for policy in policies]
    yield "S3", [S3.replay(folder, policy, hours or S3_HOURS) for policy in policies]


def table(scenario: str, reports: Sequence[ReplayReport]) -> Iterator[str]:
    """The measures of one scenario with a column for each profile; then the rules that were broken."""
    yield from ("", f"### {scenario}: {reports[0].replayed}", "")
    yield f"| measure | {' | '.join(PROFILES)} |"
    yield "| --- |" + " --- |" * len(PROFILES)
    for rows in zip(*(report.rows for report in reports), strict=True):
        title = _title(rows[0])
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in ("broken", "class", "event", "gang", "priority"):
                cells = " | ".join(said(row[name]) if name in row else "" for row in rows)
                yield f"| {title}{name.replace('_', ' ')} | {cells} |"
    for name, report in zip(PROFILES, reports, strict=True):
        yield f"| rules broken | {name}: {len(report.broken)} | {'; '.join(report.broken[:3])} |"


def _title(row: Mapping[str, Any]) -> str:
    """The title of a group of measures."""
    if "event" in row:
        return f"{row['event']}, {row['gang']}, priority {row['priority']}: "
    return f"{row['class']}: " if "class" in row else ""
