"""Labels of tasks that become numbers in the columns."""

from __future__ import annotations

from collections.abc import Sequence

from actors.documents.durations import seconds_of

#: Volcano's label for the cool-down of a task; its value is a duration such as ``10m``.
COOLDOWN_LABEL = "volcano.sh/cooldown-time"
_NEVER_ENDS = float("inf")


def cooldowns(label_sets: Sequence[tuple[tuple[str, str], ...]]) -> tuple[tuple[int, float], ...]:
    """Rows of label sets that state a cool-down, with its seconds; infinite if the duration cannot be read."""
    stated = [(row, text) for row, labels in enumerate(label_sets) for key, text in labels if key == COOLDOWN_LABEL]
    return tuple((row, _NEVER_ENDS if (seconds := seconds_of(text)) is None else seconds) for row, text in stated)
