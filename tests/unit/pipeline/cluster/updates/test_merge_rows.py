"""What is described again is compared with what is known."""

from tests.support.told_world import CLUSTER, World, drained


def test_a_podgroup_of_which_only_the_minimum_of_a_role_has_changed_is_described_anew() -> None:
    world = World()
    world.list_fleet()
    ingestor = world.ingestor()
    before = drained(ingestor).snapshot
    train = CLUSTER["podgroups"][0]
    for least in (2, 1):
        world.tell("podgroup_upserted", **{**train, "roles": {"worker": {"min": least}}})
        snapshot = drained(ingestor).snapshot
        row = ingestor.state.names.row("podgroups", "default/train")
        assert snapshot.roles.min_available[snapshot.role_start[row] : snapshot.role_start[row + 1]].tolist() == [least]
        assert len(snapshot.podgroups) - len(before.podgroups) == int(least == 1)
