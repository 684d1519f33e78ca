"""Words of decisions, made from plain data."""

import pytest

from actors.cli.sentences import decision_lines

MADE = {
    "action": "preempt", "purpose": "preempt", "preemptor": "default/want", "queue": "a", "domain": "", "price": {},
    "evicts": 1, "promises": 1, "starts": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("excess", "said"), [(0.0, "breaks as much work"), (1.0, "breaks at least 50.0% of that work")]
)
def test_a_proof_says_how_much_breaks_whichever_way_room_is_made(excess: float, said: str) -> None:
    assert f"  proof: any lawful way {said}" in decision_lines(MADE | {"bound": {"excess": excess}}, 1)
