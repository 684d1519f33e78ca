"""Words of decisions, made from plain data."""

from typing import Any

import pytest

from actors.cli.sentences import attempt_lines, decision_lines
from pipeline.decision.obstacle import Cause

MADE = {
    "action": "preempt", "purpose": "preempt", "preemptor": "default/want", "queue": "a", "domain": "", "price": {},
    "evicts": 1, "promises": 1, "starts": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("purpose", "worse"),
    [("preempt", "more important work"), ("reclaim", "takes from queues that it is less fair to take from")],
)
@pytest.mark.parametrize(
    ("excess", "said"), [(0.0, "breaks as much work"), (1.0, "breaks at least 50.0% of that work")]
)
def test_a_proof_says_how_much_breaks_in_any_way_that_is_not_worse(
    excess: float, said: str, purpose: str, worse: str
) -> None:
    """Less work may break at a higher priority, or in queues that policy spares."""
    made = MADE | {"purpose": purpose, "bound": {"excess": excess}}
    assert f"  proof: any lawful way {said}, or {worse}" in decision_lines(made, 1)


@pytest.mark.parametrize(
    ("obstacle", "said"),
    [
        ({"cause": Cause.SIZE, "task": "t", "wanted": 6e9, "found": 3e9}, ": memory 5.59Gi against 2.79Gi:"),
        ({"cause": Cause.SIZE, "task": "t", "wanted": 8e9 + 1, "found": 8e9}, "7.450580598Gi against 7.450580597Gi:"),
        ({"cause": Cause.CEILING, "queue": "q", "wanted": 2 << 30, "found": 0}, "more than 0 of memory, and 2Gi is"),
        (
            {"cause": Cause.CEILING, "queue": "q", "wanted": 1 << 30, "found": -(2 << 30)},
            "raise what it may hold by 3Gi,",
        ),
        ({"cause": Cause.CEILING, "queue": "q", "wanted": 1 << 30, "found": -(2 << 30)}, "q holds 2Gi of memory more"),
        ({"cause": Cause.THEIR_SHARE, "queue": "q", "wanted": 1 << 30, "found": 3.0}, "its share of 1Gi of memory;"),
        ({"cause": Cause.QUOTA, "queue": "q", "wanted": 512 << 20, "found": 3.0}, "the 512Mi of memory that it"),
        ({"cause": Cause.QUEUE, "queue": "q", "wanted": 9, "found": 4}, "raise what it deserves, or ask for less"),
        (
            {"cause": Cause.QUEUE, "queue": "q", "wanted": 9, "found": 4, "passes": True},
            "raise what it deserves, wait until some of its work ends, or ask for less",
        ),
    ],
)
def test_memory_is_told_with_a_suffix_and_amounts_that_differ_read_otherwise(
    obstacle: dict[str, Any], said: str
) -> None:
    told = {"action": "preempt", "reason": "quota", "minimum": 1, "obstacles": [obstacle | {"what": "memory"}]}
    _, line = attempt_lines(told)
    assert said in line
