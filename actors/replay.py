"""``clearway replay``: a recorded cluster through the pure pipeline in this process, and the measures of it."""

from __future__ import annotations

import sys
from pathlib import Path

from actors.profiles import load_profile
from actors.replays import s1
from actors.replays.recorded import RecordingRefused


def run(
    scenario: str, *, data: Path, event: str | None, priority: int | None, profile: str | None, as_json: bool
) -> int:
    """Replay a scenario and print its measures; 1 if an invariant was broken on the way."""
    policy = load_profile(profile or "default")
    if scenario.lower() == "s1":
        report = s1.replay(data, policy, event, priority)
    else:
        raise RecordingRefused(f"scenario: expected s1, found {scenario!r}")
    sys.stdout.write((report.as_json() if as_json else report.as_text()) + "\n")
    return 1 if report.broken else 0
