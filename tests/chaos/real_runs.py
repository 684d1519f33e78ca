"""One run of a schedule: faults, then rest, then the questions."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from actors.broker.bus import DECISIONS, EVENTS, BrokerUnreachable
from actors.protocol.bodies import PlanCommitted
from actors.protocol.envelopes import decisions_in
from actors.ray_runtime.cluster import RayRefused
from actors.verification.history import in_stream_order
from pipeline.policy import Policy
from tests.chaos.real_checks import broken, replayed, told, wants
from tests.chaos.real_faults import strike
from tests.chaos.real_ray import LIMIT_S, Raylets, TookTooLong
from tests.chaos.real_schedule import Schedule
from tests.chaos.real_world import World, world

#: Above every other: whoever comes last finds room, if the pipeline still works.
_MOST_URGENT = 1_000


@dataclass(slots=True)
class Outcome:
    """What a run came to; ``broken`` is empty where all is well."""

    schedule: Schedule
    broken: list[str] = field(default_factory=list)
    decisions: int = 0
    events: int = 0
    refused: int = 0
    #: One line for each message of both streams, then the workers' logs, for whoever has to find out why.
    history: list[str] = field(default_factory=list)
    took_s: dict[str, float] = field(default_factory=dict)
    #: For each leader that was struck, how long its standby took to decide, in seconds.
    took_over_s: list[float] = field(default_factory=list)
    #: What rest was waited for, in seconds.
    waited_s: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        took = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.took_s.items())
        rest = ", ".join(f"{why} {seconds:.1f} s" for why, seconds in self.waited_s.most_common(2))
        over = ", ".join(f"{seconds:.1f} s" for seconds in self.took_over_s)
        stood = f"; a standby decided after {over}" if over else ""
        return f"{self.decisions} decisions, {self.events} events, {self.refused} refused; {took}; {rest}{stood}"


def run(schedule: Schedule, raylets: Raylets, policy: Policy | None = None) -> Outcome:
    """Play a schedule; what goes wrong in it is in the outcome."""
    made = Outcome(schedule)
    try:
        with world(schedule, raylets, policy) as here:
            try:
                _play(here, made)
            except (TookTooLong, BrokerUnreachable) as late:
                made.broken.append(str(late))
            if made.broken:
                made.history = [*told_in_order(here), *raylets.complaints()]
    except (TookTooLong, RayRefused, BrokerUnreachable) as failure:
        made.broken.append(f"the world did not stand: {failure}")
    return made


def _play(here: World, made: Outcome) -> None:
    began = time.monotonic()

    def lap(what: str) -> None:
        nonlocal began
        made.took_s[what] = time.monotonic() - began
        began = time.monotonic()

    here.open()
    lap("start")
    for fault in here.schedule.faults:
        strike(here, fault)
    lap("faults")
    here.all_living()
    lap("living")
    made.refused = come_to_rest(here, made.waited_s)
    lap("rest")
    here.pipeline.stop()
    made.broken += broken(here)
    made.took_over_s = here.took_over_s
    made.decisions, made.events = len(here.history.of(DECISIONS)), len(here.history.of(EVENTS))
    lap("checks")


def _entries(here: World) -> int:
    return sum(len(here.history.of(stream)) for stream in (EVENTS, DECISIONS))


def told_in_order(here: World) -> list[str]:
    """The history in words."""
    entries = in_stream_order(here.history.of(EVENTS), here.history.of(DECISIONS))
    return [f"{at_ms} {one.entry} {one.kind} {one.uid} {one.revision} {one.body!r}" for at_ms, one in entries]


def _evicted(here: World, task: str) -> bool:
    """Whether a decision evicts the task."""
    plans = (one.body for one in decisions_in(here.history.of(DECISIONS)) if isinstance(one.body, PlanCommitted))
    return any(eviction.task == task for plan in plans for eviction in plan.evictions)


def come_to_rest(here: World, waited_s: Counter[str]) -> int:
    """One more gang comes and runs, and nothing is left to do; how many messages were refused, what was waited for.

    Another one comes where it was evicted: a queue gets back what it deserves, however urgent the work of others is.
    """
    last = here.arrive(tasks=1, priority=_MOST_URGENT, lasting=True)
    deadline, why = time.monotonic() + LIMIT_S, "the fleet is not quiet"
    looked = time.monotonic()
    while time.monotonic() < deadline:
        here.watch(block_ms=100)
        waited_s[why] += time.monotonic() - looked
        looked = time.monotonic()
        here.raise_failures()
        if not here.fleet.quiet:
            why = "the fleet is not quiet"
            continue
        made, truth = replayed(here.history.of(EVENTS), here.history.of(DECISIONS)), here.fleet.truth()
        task = f"default/{last}-0"
        if told(made) != truth:
            why = "the streams do not say what the fleet has"
        elif task not in truth and _evicted(here, task):
            last = here.arrive(tasks=1, priority=_MOST_URGENT, lasting=True)
            why = f"{last} came in the place of one that was evicted"
        elif truth.get(task, ("", None, 0))[0] != "Running":
            why = f"{last} does not run"
        elif still := wants(made, here, time.time()):
            why = f"the core would still decide: {still[0]}"
        elif here.fleet.quiet and _entries(here) == made.entries:  # nothing happened while this was looked at
            return len(made.refused)
    raise TookTooLong(f"rest: {why} after {LIMIT_S:.0f} s")
