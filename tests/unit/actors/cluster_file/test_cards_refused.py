"""What may be wrong about cards in a cluster file: each refused with its path."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.cli.simulate import open_case
from actors.cluster_file.reader import read_leniently
from pipeline.cluster.arrays import NONE
from tests.support.carded import carded, holder, waiting
from tests.support.clusters import refusal
from tests.support.simulating import simulate


def document(**task: Any) -> dict[str, Any]:
    """One holder of 4 of the 8 GB of gpu-0, his task changed; None takes a key away."""
    one = holder("a", "4Gi", "gpu-0")
    one["tasks"][0] = {key: value for key, value in (one["tasks"][0] | task).items() if value is not None}
    return carded([one])


TASK = "podgroups[0].tasks[0]"


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        ({"card": "gpu-7"}, f'{TASK}.card: expected the name of a card of n0 (gpu-0, gpu-1), found "gpu-7"'),
        ({"card": None}, f"{TASK}.card: expected the name of a card of n0, which card_request asks for, found nothing"),
        ({"card_request": None}, f'{TASK}.card: expected none without card_request, found "gpu-0"'),
        ({"card_request": "0"}, f'{TASK}.card: expected none without card_request, found "gpu-0"'),
        ({"node": None, "status": "Pending"}, f'{TASK}.card: expected none without node, found "gpu-0"'),
        ({"nominated_card": "gpu-0"}, f'{TASK}.nominated_card: expected none without nominated_node, found "gpu-0"'),
        (
            {"status": "Pending", "node": None, "card": None, "nominated_node": "n0"},
            f"{TASK}.nominated_card: expected the name of a card of n0, which card_request asks for, found nothing",
        ),
        (
            {"status": "Pending", "node": None, "card": None, "nominated_node": "n0", "nominated_card": "x"},
            f'{TASK}.nominated_card: expected the name of a card of n0 (gpu-0, gpu-1), found "x"',
        ),
        (
            {"card_request": "-1"},
            f'{TASK}.card_request: expected a non-negative quantity such as 500m or 32Gi, found "-1"',
        ),
        (
            {"card_request": [1]},
            f"{TASK}.card_request: expected a non-negative quantity such as 500m or 32Gi, found [1]",
        ),
        (
            {"card_request": "9Gi"},
            f"{TASK}.card: expected at most 8589934592 of this card of n0 to be held, found 9663676416",
        ),
        ({"count": 3}, f"{TASK}.card: expected at most 8589934592 of this card of n0 to be held, found 12884901888"),
    ],
)
def test_a_card_that_cannot_be_meant_is_refused_with_its_path(task: dict[str, Any], sentence: str) -> None:
    assert refusal(document(**task)) == sentence


@pytest.mark.parametrize(
    ("cards", "sentence"),
    [
        (
            [{"name": "g", "capacity": -1}],
            "nodes[0].cards[0].capacity: expected a non-negative quantity such as 500m or 32Gi, found -1",
        ),
        ([{"name": "g"}], "nodes[0].cards[0].capacity: expected a value, found nothing"),
        ([{"name": "g", "capacity": 1, "memory": 1}], "nodes[0].cards[0].memory: expected one of name, capacity"),
        ([{"name": "g", "capacity": 1}] * 2, 'nodes[0].cards[1].name: expected each name once, found "g"'),
        ({"g": 1}, "nodes[0].cards: expected a list"),
    ],
)
def test_a_node_s_cards_are_a_list_of_names_and_capacities(cards: Any, sentence: str) -> None:
    said = carded([])
    said["nodes"][0]["cards"] = cards
    assert refusal(said).startswith(sentence)


@pytest.mark.parametrize("card", ["gpu-0", None])
def test_who_has_ended_may_still_say_where_and_holds_nothing(card: str | None) -> None:
    snapshot = open_case(document(status="Succeeded", card=card)).snapshot
    assert snapshot.card_room.idle.tolist() == [[8 << 30, 8 << 30]]


def test_a_list_from_the_wire_is_taken_even_where_a_card_is_overfilled() -> None:
    """A fleet says what is so: a card may have lost some of its memory."""
    assert read_leniently(document(card_request="9Gi")).podgroups[0].tasks[0].on_card == 9 << 30


def test_two_tasks_that_overfill_a_card_together_are_refused_at_the_second() -> None:
    said = carded([("a", "4Gi", "gpu-0", 0), ("b", "5Gi", "gpu-0", 0)])
    assert refusal(said).startswith("podgroups[1].tasks[0].card: expected at most 8589934592 of this card")


def test_a_card_of_no_capacity_keeps_the_tasks_on_it_and_takes_no_other() -> None:
    said = carded([("a", "4Gi", "gpu-0", 0)], waiting("c", "1Gi"))
    said["nodes"][0]["cards"][0]["capacity"] = 0
    snapshot = open_case(said).snapshot
    assert snapshot.card_room.future.tolist() == [[-(4 << 30), 8 << 30]]


def test_a_promise_may_name_a_card_that_comes_free_later() -> None:
    waits = waiting("c", "8Gi")
    waits["tasks"][0] |= {"nominated_node": "n0", "nominated_card": "gpu-0"}
    snapshot = open_case(carded([("a", "4Gi", "gpu-0", 0)], waits)).snapshot
    assert (snapshot.tasks.card.tolist(), snapshot.tasks.nominated_card.tolist()) == ([0, NONE], [NONE, 0])
    assert snapshot.card_room.nominated.tolist() == [[8 << 30, 0]]


def test_an_unknown_choice_of_card_is_refused() -> None:
    said = carded([])
    said["policy"] = {"plugins": {"deviceshare": {"arguments": {"cards": "random"}}}}
    assert refusal(said) == ('policy.plugins.deviceshare.arguments.cards: expected binpack or spread, found "random"')


def test_the_protocol_s_example_of_cards_is_a_cluster_file() -> None:
    text = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text(encoding="utf-8")
    example = text.split("## Cards")[1].split("```yaml\n")[1].split("```")[0]
    said = {"version": 1, "queues": [{"name": "ml"}], **yaml.safe_load(example)}
    (done,) = simulate(said)["cycles"]
    assert done["bindings"] == [{"task": "default/c", "node": "n0", "card": "gpu-1"}]
