"""One pipeline over several raylets, from a full fleet to gangs that run, whatever dies or joins meanwhile.

The tests are one story in the order in which they stand, since every start of the roles costs seconds.
"""

import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
import ray

from actors.broker.address import broker_for
from actors.broker.bus import START
from actors.configuration.profiles import load_profile
from actors.configuration.settings import Settings
from actors.contracts import PendingReport
from actors.observability.span_store import gathered
from actors.protocol.envelopes import decisions_in
from actors.ray_runtime.cluster import ray_cluster
from actors.ray_runtime.process import Wiring
from actors.ray_runtime.role_actors import RoleActors
from actors.search.pending_reasons import newest
from pipeline.decision.explanation import Reason
from pipeline.placement.conditions import Conditions
from tests.chaos.real_ray import Raylets, Worker, raylets
from tests.integration.services import SmallFleet

LIMIT_S, LEASE_TTL_S = 90.0, 1.0


class Spread:
    """A head without processors, two raylets with one each, and the pipeline over them."""

    def __init__(self, cluster: Raylets, pipeline: RoleActors, fleet: SmallFleet, broker: int) -> None:
        self.cluster, self.pipeline, self.fleet, self.broker = cluster, pipeline, fleet, broker

    def living(self, role: str) -> list[Worker]:
        return [one for one in self.cluster.workers() if one.role == role and one.alive]

    def freeze_broker_in_a_renewal(self) -> None:
        """Freeze the broker; then the committer's lock is held by a thread that waits for it.

        That thread may also wait without the lock, to write a report; then the broker thaws and freezes anew.
        """
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            self.cluster.freeze(self.broker)
            renewed = time.monotonic() + 2 * LEASE_TTL_S
            while time.monotonic() < renewed:
                if not ray.wait([self.pipeline.committer.commit.remote([])], timeout=1.0)[0]:
                    return
            self.cluster.thaw()
        raise AssertionError("no renewal met the frozen broker")


@pytest.fixture(scope="module")
def spread() -> Iterator[Spread]:
    # Everything is dealt out, and every search has a share for everybody.
    settings = Settings(
        fleet="raylets", searchers="auto", lease_ttl_s=LEASE_TTL_S, in_place_cells=0, domains_per_attempt=1
    )
    with raylets(processors=0) as cluster:
        cluster.add(2, processors=1)
        with broker_for(settings) as address, ray_cluster(cluster.address, "raylets"):
            pipeline = RoleActors(Wiring(settings, address, load_profile("default"), "test"))
            fleet = SmallFleet(address, "raylets", racks=8)
            try:
                pipeline.await_ready(LIMIT_S)
                pipeline.await_listed(LIMIT_S)
                broker = address.connect("test").once(lambda link: link.info("server"))["process_id"]
                yield Spread(cluster, pipeline, fleet, broker)
            finally:
                pipeline.stop()
                fleet.close()


def test_a_gang_that_arrives_on_a_full_fleet_comes_to_run(spread: Spread) -> None:
    spread.fleet.place("big", priority=1, tasks=3)
    assert spread.fleet.loop.fleet.tally.misfits == 0


def test_one_trace_goes_through_every_process(spread: Spread) -> None:
    spread.fleet.place("traced", priority=1)
    spread.pipeline.flush()
    spans, _ = gathered(spread.fleet.bus, START)
    recorded = [span for span in spans if span["name"] == "record" and span["attributes"].get("victims", 0) > 0]
    mine = [span for span in spans if span["trace"] == recorded[-1]["trace"]]
    assert {"cycle", "ingest", "starving", "search_space", "attempt", "judge", "record"} <= {
        one["name"] for one in mine
    }
    roles = {one["role"] for one in mine}
    assert {"dispatcher", "committer"} <= roles
    assert any(role.startswith("searcher") for role in roles), roles


def test_a_gang_that_finds_no_room_is_told_why(spread: Spread) -> None:
    def told() -> list[dict[str, str]]:
        return [dict(one.reasons) for one in newest(spread.fleet.bus) if one.podgroup == "default/wide"]

    spread.fleet.submit("wide", priority=5, tasks=5)
    spread.fleet.until(lambda: bool(told()), "it is told")
    assert [one["preempt"] for one in told()] == [Reason.BOUND.value]


def test_every_raylet_with_a_processor_has_a_searcher(spread: Spread) -> None:
    spread.fleet.place("first", priority=1)
    nodes = {one.node for one in spread.living("searcher")}
    assert len(nodes) == 2
    assert spread.cluster.head not in nodes


def test_a_searcher_that_dies_costs_nothing_but_time(spread: Spread) -> None:
    ray.kill(spread.pipeline.searchers[0], no_restart=False)
    spread.fleet.place("after", priority=1)


def test_a_committer_that_dies_doubles_no_decision(spread: Spread) -> None:
    ray.kill(spread.pipeline.committer, no_restart=False)
    spread.fleet.place("later", priority=1)


def test_a_searcher_that_stalls_is_left_out(spread: Spread) -> None:
    spread.cluster.freeze(spread.living("searcher")[0].pid)
    for at in range(3):
        spread.fleet.place(f"stalled-{at}", priority=2 + at)
    spread.cluster.thaw()
    spread.fleet.place("thawed", priority=5)


def test_a_committer_that_waits_for_its_broker_still_says_which_service_leads(spread: Spread) -> None:
    committer = spread.pipeline.committer
    made = [one.body.judged_on for one in decisions_in(spread.fleet.recorder.decisions) if one.kind == "plan_committed"]
    none_waits = PendingReport(made[-1].epoch, (), (), Conditions(*[np.zeros(0, np.int64)] * 10))
    try:
        spread.freeze_broker_in_a_renewal()
        waiting = [committer.starving.remote(none_waits) for _ in range(20)]
        waiting += [committer.commit.remote([]) for _ in range(20)]
        assert spread.pipeline.leadership(None, 0.0) is not None
    finally:
        spread.cluster.thaw()
    ray.wait(waiting, num_returns=len(waiting), timeout=LIMIT_S)
    spread.fleet.place("heard", priority=5)


def test_when_a_raylet_dies_its_roles_go_on_elsewhere(spread: Spread) -> None:
    held = Counter(one.node for one in spread.cluster.workers() if one.node != spread.cluster.head)
    doomed, _ = max(held.items(), key=lambda item: (item[1], item[0]))
    spread.cluster.lose(doomed)
    spread.fleet.place("orphaned", priority=6)
    for role in ("ingestor", "dispatcher", "committer"):
        spread.fleet.until(lambda role=role: [one.node != doomed for one in spread.living(role)] == [True], role)
    spread.fleet.until(lambda: len(spread.living("searcher")) == 2, "both searchers, on the raylet that is left")
    spread.fleet.place("settled", priority=7)


def test_processors_that_join_are_searched_with(spread: Spread) -> None:
    spread.cluster.add(1, processors=2)
    spread.fleet.until(lambda: spread.pipeline.grow() > 0, "a searcher is added")
    spread.fleet.until(lambda: len(spread.living("searcher")) == 3, "one for each processor")
    spread.fleet.place("joined", priority=8)


def test_a_raylet_that_dies_in_the_middle_of_a_search_costs_its_shares_one_retry(spread: Spread) -> None:
    control = {one.node for role in ("ingestor", "dispatcher", "committer") for one in spread.living(role)}
    doomed = min({one.node for one in spread.living("searcher")} - control)  # after a loss there may be two
    for one in spread.living("searcher"):
        if one.node == doomed:
            spread.cluster.freeze(one.pid)  # so that it is at work, whenever its raylet dies
    began = time.monotonic()
    spread.fleet.submit("searched", priority=9, tasks=2)
    spread.fleet.until(lambda: time.monotonic() > began + 0.5, "a search is under way")
    assert spread.fleet.loop.fleet._tasks["default/searched-0"].status == "Pending"
    spread.cluster.lose(doomed)
    started = [f"default/searched-{at}" for at in range(2)]
    took_s = spread.fleet.until(
        lambda: all(spread.fleet.loop.fleet._tasks[one].status == "Running" for one in started), "it runs"
    )
    assert took_s < 30.0


def test_the_history_breaks_no_rule(spread: Spread) -> None:
    report = spread.fleet.report()
    assert report.broken == []
    assert report.placed == 14
