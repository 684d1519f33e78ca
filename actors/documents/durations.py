"""Durations as Go writes them, such as ``1h2m3.5s``: in labels of tasks, profiles and scheduler configurations."""

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PART = r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)"


def seconds_of(text: str) -> float | None:
    """Seconds of a duration of zero or more; None if the text is none."""
    if text == "0":
        return 0.0
    if re.fullmatch(f"(?:{_PART})+", text) is None:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
