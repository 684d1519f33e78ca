"""What a service says of itself is what is true: whether it leads, stands by or waits, and who else is there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from actors.broker.memory_bus import MemoryBus
from actors.configuration.settings import Settings, TelemetrySettings
from actors.contracts import Intake, Leadership
from actors.health.facts import Facts
from actors.health.watch import Beats, Watch
from actors.observability.telemetry import start as start_telemetry
from actors.protocol.presence import EVERY_S, Presence, RolePlace, announce, present
from tests.support.assembly import Clock
from tests.support.measured import recorded

LEADS, STANDS_BY = Leadership(4.0, 3, "me"), Leadership(0.0, 3, "other")
LISTED = Intake(listed=True)
PLACES = {name: RolePlace(host="h", process=1) for name in ("committer", "dispatcher", "ingestor", "searcher-0")}


class Told:
    """Roles that say what a test says."""

    def __init__(self) -> None:
        self.now: Leadership | None = LEADS
        self.came: Intake | None = LISTED
        self.where: Mapping[str, RolePlace] = PLACES
        self.said: Mapping[str, Sequence[Any]] = {}
        self.runs_s: float | None = 0.0

    def leadership(self, leads: bool | None, limit_s: float) -> Leadership | None:
        del leads, limit_s
        return self.now

    def intake(self) -> Intake | None:
        return self.came

    def cycling_s(self, limit_s: float) -> float | None:
        del limit_s
        return self.runs_s

    def places(self) -> Mapping[str, RolePlace]:
        return self.where

    def figures(self) -> Mapping[str, Sequence[Any]]:
        return self.said


@pytest.fixture
def roles() -> Told:
    return Told()


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def watch(roles: Told, clock: Clock) -> Watch:
    telemetry = start_telemetry(TelemetrySettings(), "run")
    made = Watch(Settings(fleet="test"), "me", "p", telemetry, profile="default", elapsed_s=clock)
    made.begin(roles)
    return made


def looked(watch: Watch, clock: Clock, times: int = 3) -> Facts:
    for _ in range(times):
        clock.now += 1.0
        watch.look()
    return watch.facts


@pytest.mark.parametrize(
    ("facts", "state", "hindrance"),
    [
        (Facts(), "starts", "its roles are starting"),
        (Facts(started=True, leadership=LEADS, intake=LISTED), "leads", ""),
        (Facts(started=True, leadership=STANDS_BY, intake=LISTED), "stands by", ""),
        (Facts(started=True, leadership=LEADS, intake=Intake(False, 12.0)), "waits", "no fleet is listed for 12 s"),
        (Facts(started=True, leadership=Leadership(), intake=LISTED), "waits", "no service holds the lease"),
        (Facts(started=True, leadership=None, intake=LISTED), "waits", "the committer does not answer"),
        (Facts(started=True, leadership=LEADS), "waits", "the ingestor has not answered yet"),
        (Facts(started=True, stopping=True, leadership=LEADS, intake=LISTED), "stops", "it is told to stop"),
    ],
)
def test_a_state_is_what_the_roles_say(facts: Facts, state: str, hindrance: str) -> None:
    assert facts.state == state
    assert facts.hindrance.startswith(hindrance)
    assert facts.ready == (not hindrance)


@pytest.mark.parametrize(
    ("lost", "hindrance"), [("dispatcher", "dispatcher does not answer"), ("searcher-0", "no searcher answers")]
)
def test_a_role_that_does_not_answer_is_named(lost: str, hindrance: str) -> None:
    places = {**PLACES, lost: RolePlace(answers=False)}
    assert Facts(started=True, leadership=LEADS, intake=LISTED, roles=places).hindrance == hindrance


def test_a_service_whose_lease_is_given_back_does_not_go_on_saying_that_it_leads(
    watch: Watch, roles: Told, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert looked(watch, clock).state == "leads"
    roles.now, roles.came = Leadership(), Intake(False, 11.0)
    assert looked(watch, clock).state == "waits"
    assert not watch.ready()[0]
    roles.now, roles.came = replace(LEADS, epoch=4), LISTED
    assert looked(watch, clock).ready
    assert [one.getMessage() for one in caplog.records] == [
        "leads, epoch 3",
        "ready: leads",
        "not ready: no fleet is listed for 11 s: nothing is decided before it says what it has",
        "leads no longer; no service is known to lead",
        "leads, epoch 4",
        "ready: leads",
    ]


def test_the_moment_between_two_owners_of_the_lease_is_not_news(
    watch: Watch, roles: Told, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    looked(watch, clock)
    caplog.clear()
    roles.now = Leadership()
    clock.now += 1.0
    watch.look()
    roles.now = STANDS_BY
    looked(watch, clock)
    assert caplog.messages == ["stands by; other leads, epoch 3"]


def test_a_watch_that_stands_still_is_not_alive(watch: Watch, clock: Clock) -> None:
    looked(watch, clock)
    assert watch.live()[0]
    clock.now += 61.0
    assert not watch.live()[0]


def test_ready_says_how_far_readers_are_behind(watch: Watch, roles: Told, clock: Clock) -> None:
    roles.came = Intake(True, 0.0, {"decisions/fleet": (7, 2.5)})
    looked(watch, clock)
    good, said = watch.ready()
    assert good
    assert said["lag"] == {"decisions/fleet": {"entries": 7, "seconds": 2.5}}
    assert (said["state"], said["leader"], said["epoch"], said["listed"]) == ("leads", "me", 3, True)


def test_a_cycle_that_runs_for_more_than_a_minute_is_said_where_ready_is_asked_for_and_once_in_the_log(
    watch: Watch, roles: Told, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    looked(watch, clock)
    caplog.clear()
    for runs_s in (0.4, 59.0, 61.0, None, 62.25):
        roles.runs_s = runs_s
        looked(watch, clock)
    assert watch.ready()[1]["cycling_s"] == 62.25
    assert watch.ready()[0]
    roles.runs_s = None  # it is too busy to answer
    looked(watch, clock)
    assert watch.ready()[1]["cycling_s"] == 62.25
    roles.runs_s = 0.0
    looked(watch, clock)
    assert watch.ready()[1]["cycling_s"] == 0.0
    assert [one.getMessage() for one in caplog.records] == [
        "one cycle has run for 61 s; nothing else is decided before it ends",
        "the long cycle has ended",
    ]


def test_figures_of_all_roles_stand_on_one_page_with_their_fleet_and_role(
    watch: Watch, roles: Told, clock: Clock
) -> None:
    searcher = start_telemetry(TelemetrySettings(), "searcher-0")
    searcher.figures.attempt_s.record(0.004)
    committer = start_telemetry(TelemetrySettings(), "committer")
    committer.figures.verdicts.add(2, {"verdict": "accepted", "reason": ""})
    roles.said = {"searcher-0": searcher.exposed.families(), "committer": committer.exposed.families()}
    looked(watch, clock)
    page = watch.metrics().decode()
    assert 'clearway_attempt_duration_seconds_bucket{fleet="test",le="0.005",role="searcher-0"} 1.0' in page
    assert 'clearway_verdicts_total{fleet="test",reason="",role="committer",verdict="accepted"} 2.0' in page
    assert 'clearway_service_leads{fleet="test",role="run"} 1.0' in page
    assert 'clearway_services{fleet="test",role="run",state="leads"} 1.0' in page
    assert page.count("# TYPE clearway_attempt_duration_seconds histogram") == 1


def test_a_service_says_how_it_is_where_its_page_is_not_asked_for(roles: Told, clock: Clock) -> None:
    reader = InMemoryMetricReader()
    telemetry = start_telemetry(TelemetrySettings(), "run", reader=reader)
    watch = Watch(Settings(fleet="test"), "me", "p", telemetry, elapsed_s=clock)

    def said() -> tuple[int, int, list[str]]:
        found = recorded(reader)
        states = [state for state, services in found["clearway.services"].items() if services]
        return found["clearway.service.leads"][""], found["clearway.service.ready"][""], states

    assert said() == (0, 0, ["starts"])
    watch.begin(roles)
    looked(watch, clock)
    assert said() == (1, 1, ["leads"])
    assert recorded(reader)["clearway.roles.silent"] == {"": 0}
    roles.now = STANDS_BY
    looked(watch, clock)
    assert said() == (0, 1, ["stands by"])
    roles.now = LEADS
    looked(watch, clock)
    watch.end()
    assert said() == (0, 0, ["stops"])


def test_a_standby_that_dies_is_seen_by_the_leader(
    watch: Watch, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    wall = Clock()
    bus = MemoryBus("test", wall)
    beats = Beats(bus, watch, "me")
    looked(watch, clock)
    announce(bus, Presence(owner="other", host="h", process=2, version="1", state="stands by", ready=True))
    beats.beat()
    assert watch.facts.others["other"].state == "stands by"
    assert 'clearway_services{fleet="test",role="run",state="stands by"} 1.0' in watch.metrics().decode()
    wall.now += 3 * EVERY_S - 1
    beats.beat()
    assert watch.facts.others.keys() == {"other"}
    wall.now += 2
    beats.beat()
    assert watch.facts.others == {}
    assert 'clearway_services{fleet="test",role="run",state="stands by"} 0.0' in watch.metrics().decode()
    unlike = f"its version is 1, ours {version('clearway')}; its profile is not said, ours default"
    assert caplog.messages[-3:] == [
        "service other is there and stands by",
        f"service other would decide otherwise where it leads: {unlike}",
        "service other is gone; its last word was that it stands by",
    ]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({}, None),
        ({"settings": "others"}, None),
        ({"profile": "kai", "policy": "k"}, "its profile is kai, ours default"),
        ({"policy": "edited"}, "its profile default has another content"),
        ({"version": "0.0.9"}, f"its version is 0.0.9, ours {version('clearway')}"),
        ({"profile": "kai", "policy": "k", "shadow": True}, None),
    ],
)
def test_a_service_that_would_decide_otherwise_is_named_when_it_comes_and_a_shadow_is_not(
    watch: Watch, caplog: pytest.LogCaptureFixture, other: dict[str, Any], said: str | None
) -> None:
    one = watch.presence().model_copy(update={"owner": "other", "state": "stands by", **other})
    for _ in range(2):
        watch.meet({"other": one})
    told = [] if said is None else [f"service other would decide otherwise where it leads: {said}"]
    assert caplog.messages == told


def test_a_service_with_a_short_lease_is_missed_sooner() -> None:
    telemetry = start_telemetry(TelemetrySettings(), "run")
    wall = Clock()
    bus = MemoryBus("test", wall)
    hasty = Watch(Settings(fleet="test", lease_ttl_s=1.0), "hasty", "p", telemetry)
    assert hasty.every_s == 1.0
    announce(bus, hasty.presence())
    began = wall.now
    assert present(bus, began + 2.9).keys() == {"hasty"}
    assert present(bus, began + 3.1) == {}
    patient = Watch(Settings(fleet="test", lease_ttl_s=60.0), "patient", "p", telemetry)
    assert patient.every_s == EVERY_S


@pytest.mark.parametrize("shadow", [False, True])
def test_a_service_says_whether_it_is_a_shadow(shadow: bool) -> None:
    watch = Watch(Settings(fleet="test", shadow=shadow), "me", "p", start_telemetry(TelemetrySettings(), "run"))
    assert watch.presence().shadow == watch.ready()[1]["shadow"] == shadow


def test_the_stream_says_which_services_there_are_and_where_their_roles_live(watch: Watch, clock: Clock) -> None:
    bus = MemoryBus("test", Clock())
    looked(watch, clock)
    Beats(bus, watch, "me").beat()
    ((_, mine),) = present(bus).values()
    assert (mine.owner, mine.state, mine.epoch, mine.profile, mine.policy) == ("me", "leads", 3, "default", "p")
    assert len(mine.settings) == 16
    assert mine.roles["searcher-0"] == RolePlace(host="h", process=1)
    watch.end()
    Beats(bus, watch, "me").beat()
    assert present(bus) == {}


def test_an_entry_of_services_that_cannot_be_read_is_passed_over() -> None:
    bus = MemoryBus("test", Clock())
    bus.publish("services", {"service": b"\xc1"})
    bus.publish("services", {"other": b""})
    assert present(bus) == {}
