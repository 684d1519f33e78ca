"""A full list that is owed is asked for until it comes, whatever becomes of the one that asked."""

from actors.ingestion.ingestor import LIST_WITHIN_S
from actors.protocol.envelopes import Outgoing
from actors.protocol.full_list import cut
from tests.support.told_world import CLUSTER, World, drained


def test_a_list_that_is_owed_is_asked_for_again_after_a_restart() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    for number in (1, 3):  # the second never came
        world.say(world.outgoing("queue_upserted", {"name": f"q{number}"}), sequence=str(number).encode())
    drained(ingestor)
    ingestor.checkpoint()
    assert world.asked() == ["entries 2 to 2 of the fleet never came"]
    again = world.ingestor("again")
    assert world.asked()[1:] == ["1 entries of the fleet never came"]
    world.list_fleet(list_id="at last")
    drained(again)
    assert again.state.holes == 0
    again.checkpoint()
    world.ingestor("third")
    assert len(world.asked()) == 2


def test_a_list_does_not_make_up_for_what_is_lost_after_it() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    world.say(world.outgoing("queue_upserted", {"name": "q1"}), sequence=b"1")
    world.list_fleet(list_id="between")
    world.say(world.outgoing("queue_upserted", {"name": "q3"}), sequence=b"3")
    drained(ingestor)
    assert ingestor.state.holes == 1
    world.now += LIST_WITHIN_S
    ingestor.poll()
    assert len(world.asked()) == 2


def test_a_list_whose_rest_never_comes_is_asked_for_again() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    parts = cut(CLUSTER, "torn", 100)
    world.say(Outgoing("fleet_listed", "fleet", 99, parts[0]), sequence=b"1")
    for again in (ingestor, None):
        reader = again if again is not None else world.ingestor("again")
        drained(reader)
        world.say(world.outgoing("queue_upserted", {"name": "q"}), sequence=b"9")
        asked = len(world.asked())
        world.now += LIST_WITHIN_S
        reader.poll()
        world.now += LIST_WITHIN_S
        reader.poll()
        assert len(world.asked()) > asked
