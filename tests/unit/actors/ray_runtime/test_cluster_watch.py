"""A service that has lost its Ray cluster says so and ends; Ray itself would wait for a minute and abort it."""

import pytest

from actors.ray_runtime.cluster import GONE_S, ClusterEnded, ClusterWatch, is_loopback, store_bytes


class Cluster:
    """A cluster that takes connections or does not, and a clock."""

    def __init__(self) -> None:
        self.there, self.now = True, 0.0
        self.watch = ClusterWatch(lambda: self.there, lambda: self.now)

    def look(self, roles_answer: bool, seconds: float) -> None:
        self.now += seconds
        self.watch.look(roles_answer)


def test_a_cluster_that_is_silent_with_its_roles_for_too_long_has_ended() -> None:
    cluster = Cluster()
    cluster.there = False
    cluster.look(False, 0.0)
    cluster.look(False, GONE_S - 0.1)
    with pytest.raises(ClusterEnded, match="the Ray cluster has ended"):
        cluster.look(False, 0.1)


@pytest.mark.parametrize(("there", "roles_answer"), [(True, False), (False, True)])
def test_while_the_cluster_or_the_roles_answer_it_has_not_ended(there: bool, roles_answer: bool) -> None:
    cluster = Cluster()
    cluster.there = False
    cluster.look(False, 0.0)
    cluster.there = there
    cluster.look(roles_answer, GONE_S)
    cluster.there = False
    cluster.look(False, GONE_S)  # its silence begins anew
    with pytest.raises(ClusterEnded):
        cluster.look(False, GONE_S)


@pytest.mark.parametrize(
    ("address", "here"),
    [("127.0.0.1:6379", True), ("[::1]:6379", True), ("localhost:6379", True), ("10.0.0.7:6379", False),
     ("ray-head:6379", False), ("auto", False)],
)  # fmt: skip
def test_a_cluster_that_only_this_machine_reaches_is_joined_where_it_listens(address: str, here: bool) -> None:
    assert is_loopback(address) == here


@pytest.mark.parametrize(
    ("memory_gib", "shared_gib", "gib"),
    [(24, 24, 4.0), (10, 24, 3.0), (10, 2, 1.8), (1, 24, 0.5), (10, 0.0625, 0.5)],
    ids=["a large machine", "a share of the memory", "a share of /dev/shm", "little memory", "little shared memory"],
)
def test_the_object_store_is_as_large_as_the_machine_allows(memory_gib: float, shared_gib: float, gib: float) -> None:
    assert store_bytes(int(memory_gib * 2**30), int(shared_gib * 2**30)) == pytest.approx(gib * 2**30, abs=1)
