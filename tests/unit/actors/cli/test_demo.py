"""What the demo says at its end."""

from actors.cli.demo import arrival_to_room


def test_a_gang_that_had_to_wait_for_others_to_end_is_told_apart_from_how_long_decisions_take() -> None:
    waited = {"arrivals/gang-000": 40, "arrivals/gang-001": 60, "arrivals/gang-002": 8_500}
    first, *others = arrival_to_room(waited, {"arrivals/gang-002": "the queue may not take more"})
    assert first == "arrival to room       p50 60 ms, p99 60 ms, of 2 gangs for which there was a plan at once"
    assert others == ["  waited    8.5 s       gang-002: the queue may not take more"]


def test_a_gang_that_never_got_room_did_not_wait_for_it() -> None:
    assert list(arrival_to_room({}, {"arrivals/gang-003": "even all legal evictions would leave too few places"})) == [
        "arrival to room       p50 0 ms, p99 0 ms, of 0 gangs for which there was a plan at once"
    ]
