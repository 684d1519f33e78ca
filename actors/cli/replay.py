"""``clearway replay``: replays a recorded cluster through the pure pipeline in this process, and measures it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.configuration.profiles import load_profile
from actors.documents.results import say
from actors.replays import s1
from actors.replays.recorded import RecordingRefused
from actors.replays.s2 import S2
from actors.replays.s3 import S3
from actors.replays.side_by_side import PROFILES, side_by_side, table

#: Replays all scenarios under two profiles and writes a page.
_ALL = "all"
#: Options of each scenario, beside those that all share.
_OPTIONS = {"s1": ("event", "priority"), "s2": ("hours",), "s3": ("hours",), _ALL: ("hours",)}


def run(scenario: str, chosen: Mapping[str, Any], *, data: Path, profile: str | None, as_json: bool) -> int:
    """Replay a scenario and print its measures; 1 if an invariant was broken on the way.

    Parameters
    ----------
    chosen
        Options by name, None if not given: event, priority, hours.

    Raises
    ------
    RecordingRefused
        For an unknown scenario or option, or a recording that cannot be used.
    """
    name, policy = scenario.lower(), load_profile("default" if profile is None else profile)
    if name not in _OPTIONS:
        raise RecordingRefused(f"scenario: expected one of {', '.join(_OPTIONS)}, found {scenario!r}")
    for option, value in chosen.items():
        if value is not None and option not in _OPTIONS[name]:
            raise RecordingRefused(f"--{option}: expected none in scenario {name}, found {value!r}")
    if name == _ALL:
        if profile is not None or as_json:
            page = f"it is a page of {' and '.join(PROFILES)}"
            raise RecordingRefused(f"scenario {name}: expected neither --profile nor --json: {page}")
        return _all(data, chosen["hours"])
    if name == "s1":
        report = s1.replay(data, policy, chosen["event"], chosen["priority"])
    else:
        report = {"s2": S2, "s3": S3}[name].replay(data, policy, chosen["hours"])
    say((report.as_json() if as_json else report.as_text()) + "\n")
    return 1 if report.broken else 0


def _all(data: Path, hours: float | None) -> int:
    """Print every scenario as it is measured; 1 if an invariant was broken in any of them."""
    broken = False
    for scenario, reports in side_by_side(data, hours):
        for line in table(scenario, reports):
            say(f"{line}\n")
        broken |= any(report.broken for report in reports)
    return 1 if broken else 0
