"""Durations in the notation of Go, such as ``1h2m3.5s``, and times in that of ISO 8601, as other systems write them."""

import re
from datetime import UTC, datetime

#: What a message says where a time was expected.
A_TIME = "a time such as 2026-01-31T12:00:00Z"

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_PART = r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)"


def seconds_of(text: str) -> float | None:
    """The seconds of a duration, at least 0; None if the text is not a duration."""
    if text == "0":
        return 0.0
    if re.fullmatch(f"(?:{_PART})+", text) is None:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))


def moment_of(text: str) -> float | None:
    """The seconds since the epoch of a time, in UTC if it states no offset; None if the text is not a time."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
