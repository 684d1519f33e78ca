"""A whole pipeline in one thread, on streams in memory, with a small fleet, for a few seconds of simulated time.

It reaches the code that a live pipeline reaches: lists, news of every kind, decisions that are folded, nominations that
are redeemed. So it compiles every kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.broker.bus import DECISIONS, EVENTS, START
from actors.broker.memory_bus import MemoryBus
from actors.broker.memory_ledger import MemoryLedger
from actors.columns.name_directory import Directory
from actors.commit.committer import Committer
from actors.configuration.settings import Settings, TelemetrySettings
from actors.contracts import SnapshotUpdate
from actors.fleets.generated import NOW
from actors.fleets.simulated import SimulatedFleet
from actors.ingestion.loop import IngestLoop
from actors.observability.telemetry import start
from actors.protocol.envelopes import Message, Outgoing, decode_decisions, pack
from actors.search.dispatcher import Dispatcher
from actors.search.searcher import Searcher
from pipeline.policy import Policy

_RACKS, _NODES = 2, 4
_GPUS, _CARD = 8, "8Gi"
_IN_ONE_RACK = {"name": "in", "min_available": 2, "topology": {"required": "rack"}}


class Rehearsal:
    """All roles, called in turn, and the fleet that carries out their decisions. It sets the time itself.

    Parameters
    ----------
    budgets
        Whether there is a disruption budget: then plugins are asked about each list of candidates, in order. Without
        one their quotas are counted in columns.
    """

    def __init__(self, policy: Policy, *, budgets: bool) -> None:
        self._now = NOW
        telemetry, directory = start(TelemetrySettings(), "rehearsal"), Directory()
        self._bus = MemoryBus("rehearsal", self._clock)
        self._fleet = SimulatedFleet(_cluster(budgets=budgets), seed=1, grace_s=(1.0, 2.0))
        self._ingest = IngestLoop(Settings(fleet="rehearsal"), self._bus, telemetry, now_s=self._clock)
        self._directory, self._obeyed, self._news = directory, START, None
        self._committer = Committer(
            MemoryLedger(self._bus, self._clock), self._bus, policy, directory, telemetry,
            owner="rehearsal", now_s=self._clock,
        )  # fmt: skip
        here = Searcher(policy, telemetry)
        self._dispatcher = Dispatcher(policy, here, here, self._committer.commit, telemetry, now_s=self._clock)

    _news: SnapshotUpdate | None

    def _clock(self) -> float:
        return self._now

    def play(self) -> int:
        """Let gangs come and go, nodes and a queue too, and list the fleet again; the number of decisions."""
        self._say(self._fleet.listing("first"))
        made = 0
        for acts in _ACTS:
            for act in acts:
                self._say(getattr(self._fleet, act[0])(*act[1:]))
            made += sum(self._turn() for _ in range(3))
        return made

    def _turn(self) -> int:
        """One round of all roles, which takes one second; the number of decisions."""
        self._committer.lead()
        while (told := self._ingest.turn(block_ms=0)) is not None:
            self._news = SnapshotUpdate(self._ingest.snapshot, told)
            self._directory.take(self._ingest.additions(None))
            self._committer.hear(self._news.snapshot)
            self._committer.tend()
        assert self._news is not None
        answers = self._dispatcher.cycle(self._news).answers
        for entry in self._bus.follow(DECISIONS, self._obeyed):
            self._obeyed = entry.id
            for message in decode_decisions(entry):
                assert isinstance(message, Message)
                self._say(self._fleet.obey(message, self._now))
        self._now += 1.0
        self._say(self._fleet.step(self._now))
        return len(answers)

    def _say(self, events: Sequence[Outgoing]) -> None:
        for entry in pack(events):
            self._bus.publish(EVENTS, entry)


# -- the fleet, and what happens on it ---------------------------------------------------------------------------------


def _node(at: int) -> dict[str, Any]:
    cards = [{"name": f"gpu-{card}", "capacity": _CARD} for card in range(2)]
    room = {"cpu": 64, "memory": "256Gi", "nvidia.com/gpu": _GPUS, "pods": 64}
    return {"name": f"n{at}", "allocatable": room, "cards": cards, "labels": {"zone": f"z{at % 2}"}}


def _cluster(*, budgets: bool) -> dict[str, Any]:
    """Two full racks: gangs of two queues, some with surplus, roles, subgroups, a budget or cards."""
    names = [f"n{at}" for at in range(_RACKS * _NODES)]
    half = {"nvidia.com/gpu": len(names) * _GPUS // 2}
    return {
        "version": 1,
        "nodes": [_node(at) for at in range(len(names))],
        "topology": {
            "levels": ["pod", "rack"],
            "domains": [
                {"name": "p0", "level": "pod"},
                *({"name": f"r{at}", "level": "rack", "parent": "p0", "nodes": names[at * _NODES : (at + 1) * _NODES]}
                  for at in range(_RACKS)),
            ],
        },
        "queues": [{"name": "a", "deserved": half}, {"name": "b", "deserved": half}],
        "disruption_budgets": [{"name": "shop", "match_labels": {"app": "shop"}, "disruptions_allowed": 1}] * budgets,
        "podgroups": [
            _gang("rigid", 4, 4, "a", on=names[:2]),
            _gang("elastic", 4, 4, "a", on=names[2:4], min_available=2),
            _gang("roles", 4, 4, "b", on=names[4:6], parts=("role", "ps", "worker"),
                  roles={"ps": {"min": 1}, "worker": {"min": 2}}, min_available=3),
            _gang("parts", 4, 4, "b", on=names[6:8], parts=("subgroup", "left", "right"),
                  subgroups=[{"name": "left", "min_available": 1}, {"name": "right", "min_available": 2}]),
            _gang("shop", 2, 0, "a", on=names[:1], labels={"app": "shop"}),
            _gang("card", 1, 0, "a", on=names[:1], card_request="4Gi", card="gpu-0"),
        ],
    }  # fmt: skip


def _gang(
    name: str,
    tasks: int,
    gpus: int | Sequence[int],
    queue: str,
    *,
    on: Sequence[str] = (),
    parts: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    card_request: str | None = None,
    card: str | None = None,
    apart: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """A podgroup that runs ``on`` nodes or waits; ``parts`` has the key and the names of its roles or subgroups."""
    said, each = [], (gpus,) if isinstance(gpus, int) else gpus
    for at in range(tasks):
        task: dict[str, Any] = {
            "name": f"{name}-{at}", "index": at, "created": NOW - 100.0, "labels": dict(labels or {}),
            "request": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": each[at % len(each)]},
            "status": "Running" if on else "Pending",
        }  # fmt: skip
        task |= {"node": on[at * len(on) // tasks]} if on else {}
        task |= {parts[0]: parts[1:][at * (len(parts) - 1) // tasks]} if parts else {}
        task |= {"card_request": card_request} if card_request else {}
        task |= {"card": card} if card else {}
        task |= {"pod_anti_affinity": [{"topology_key": "zone", "match_labels": {"gang": name}}]} if apart else {}
        said.append(task)
    started = {"started": NOW - 90.0, "phase": "Running"} if on else {}
    return {
        "name": name, "queue": queue, "priority": priority, "min_available": tasks, "created": NOW - 100.0,
        "tasks": said, **started, **more,
    }  # fmt: skip


#: Events, act by act; some seconds pass after each act.
_ACTS: tuple[tuple[tuple[Any, ...], ...], ...] = (
    (),
    (("submit", _gang("wide", 2, 8, "a", priority=5, topology={"required": "rack"}), 2.0),),
    (
        ("submit", _gang("two", 3, 4, "b", priority=9), 2.0),
        ("submit", _gang("whole", 1, 8, "a", priority=9), 1.0),
        ("submit", _gang("carded", 1, 0, "b", priority=9, card_request="8Gi"), 1.0),
    ),
    (("fail_node", "n5"),),
    (("submit", _gang("late", 3, (2, 1), "b", priority=3, parts=("role", "one", "two")), 1.0), ("listing", "second")),
    (
        ("submit", _gang("mixed", 4, (4, 1), "a", priority=9, topology={"required": "rack"}), 1.0),
        ("submit", _gang("mixed-b", 4, (4, 1), "b"), 1.0),
    ),
    (
        ("submit", _gang("apart", 2, 2, "b", priority=9, apart=True), 1.0),
        ("submit", _gang("small", 2, 0, "a", topology={"required": "rack", "preferred": "rack"}), 1.0),
    ),
    (("join_node", _node(8)), ("add_queue", {"name": "c"})),
    tuple(("submit", _gang(f"alike-{at}", 2, 4, "b", priority=12), 1.0) for at in range(3)),
    (("submit", _gang("inner", 2, 1, "a", priority=12, parts=("subgroup", "in"), subgroups=[_IN_ONE_RACK]), 1.0),),
)
