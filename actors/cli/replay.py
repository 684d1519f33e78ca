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
from actors.replays.side_by_side import side_by_side

#: Replays all scenarios under two profiles and writes a page.
_ALL = "all"
#: Options of each scenario, beside those that all share.
_OPTIONS = {"s1": ("event", "priority"), "s2": ("hours",), "s3": ("hours",)}


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
    if name == _ALL:
        for line in side_by_side(data, chosen["hours"]):
            say(f"{line}\n")
        return 0
    if name not in _OPTIONS:
        raise RecordingRefused(f"scenario: expected one of {', '.join((*_OPTIONS, _ALL))}, found {scenario!r}")
    for option, value in chosen.items():
        if value is not None and option not in _OPTIONS[name]:
            raise RecordingRefused(f"--{option}: expected none in scenario {name}, found {value!r}")
    if name == "s1":
        report = s1.replay(data, policy, chosen["event"], chosen["priority"])
    else:
        report = {"s2": S2, "s3": S3}[name].replay(data, policy, chosen["hours"])
    say((report.as_json() if as_json else report.as_text()) + "\n")
    return 1 if report.broken else 0
