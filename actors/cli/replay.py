"""``clearway replay``: a recorded cluster through the pure pipeline in this process, and the measures of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actors.configuration.profiles import load_profile
from actors.replays import s1, s2, s3
from actors.replays.recorded import RecordingRefused
from actors.replays.side_by_side import side_by_side

#: All scenarios, each under two profiles, as a page.
_ALL = "all"
#: The options of each scenario, besides those that all share.
_UNDERSTOOD = {"s1": ("event", "priority"), "s2": ("hours",), "s3": ("hours",)}


def run(scenario: str, chosen: Mapping[str, Any], *, data: Path, profile: str | None, as_json: bool) -> int:
    """Replay a scenario and print its measures; 1 if an invariant was broken on the way.

    Parameters
    ----------
    chosen
        Options by name, None where not given: event, priority, hours.

    Raises
    ------
    RecordingRefused
        For a scenario or an option of it that is not known, or a recording that cannot be used.
    """
    name, policy = scenario.lower(), load_profile(profile or "default")
    if name == _ALL:
        for line in side_by_side(data, chosen["hours"]):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        return 0
    if name not in _UNDERSTOOD:
        raise RecordingRefused(f"scenario: expected one of {', '.join((*_UNDERSTOOD, _ALL))}, found {scenario!r}")
    for option, value in chosen.items():
        if value is not None and option not in _UNDERSTOOD[name]:
            raise RecordingRefused(f"--{option}: expected none in scenario {name}, found {value!r}")
    if name == "s1":
        report = s1.replay(data, policy, chosen["event"], chosen["priority"])
    else:
        report = {"s2": s2, "s3": s3}[name].replay(data, policy, chosen["hours"])
    sys.stdout.write((report.as_json() if as_json else report.as_text()) + "\n")
    return 1 if report.broken else 0
