"""What the streams alone say of each decision: a history as it was breaks nothing, one with a greedy judge does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgpack
import pytest

from actors.broker.bus import DECISIONS, EVENTS, Entry
from actors.commit import committer
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.statement import Statement
from pipeline.policy import Policy
from tests.chaos import memory_broken as broken
from tests.chaos.decisions_again import broken_in
from tests.chaos.memory_world import KAI, KOORDINATOR, Parts, World
from tests.chaos.schedule import drawn
from tests.support.depth import sampled

#: Played one by one until one shows it; first those that are known to.
SEEDS = [1, 9, *range(2, 41)]
#: How many histories of each policy are made again.
HISTORIES = sampled(5, least=2)
#: One with a decision that replaces another.
REPLACES = 12


def found(seed: int, parts: Parts | None = None) -> list[str]:
    world = World(drawn(seed), parts)
    world.play()
    return [*broken_in(world.bus.history[EVENTS], world.bus.history.get(DECISIONS, []), world.policy)]


@pytest.mark.parametrize("policy", [Parts().policy, KAI, KOORDINATOR], ids=lambda policy: policy.profile)
def test_in_a_history_in_which_things_went_wrong_each_decision_keeps_the_rules_and_is_made_again(
    policy: Policy,
) -> None:
    assert [found(seed, Parts(policy=policy)) for seed in range(1, 1 + HISTORIES)] == [[]] * HISTORIES


def test_a_dispatcher_that_decides_otherwise_than_the_core_shows_in_the_history() -> None:
    told = (sentence for seed in SEEDS for sentence in found(seed, Parts(dispatcher=broken.Unsteady)))
    assert any(sentence.startswith("(2, 19) on revision") for sentence in told)


@pytest.mark.parametrize("named", ["planned_on", "judged_on"])
def test_a_decision_on_a_state_that_never_was_shows_in_the_history(named: str) -> None:
    world = World(drawn(1))
    world.play()
    (entry,) = [one for one in world.bus.history[DECISIONS] if b"evictions" in one.fields["batch"]][:1]
    (envelope,) = msgpack.unpackb(entry.fields["batch"])
    envelope["body"][named]["revision"] += 1_000_000
    forged = replace(entry, fields={**entry.fields, "batch": msgpack.packb([envelope])})
    history = [forged if one is entry else one for one in world.bus.history[DECISIONS]]
    (sentence,) = broken_in(world.bus.history[EVENTS], history, world.policy)
    assert sentence.startswith("(13) plan")
    assert "which no replay has" in sentence


@pytest.fixture(scope="module")
def replacing() -> World:
    """A history in which a decision was replaced, since its victims did not end."""
    world = World(drawn(REPLACES))
    world.play()
    return world


def other_node(body: dict[str, Any]) -> None:
    body["nominations"][0]["node"] = "n5"


def fewer_late(body: dict[str, Any]) -> None:
    del body["overdue"][0]


def other_life(body: dict[str, Any]) -> None:
    body["overdue"][0]["incarnation"] += 1


def sooner(body: dict[str, Any]) -> None:
    """The victims had another second."""
    for one in body["overdue"]:
        one["avoided_until"] += 1.0


def held_longer(body: dict[str, Any]) -> None:
    body["expires_at"] += 1.0


def not_recorded(body: dict[str, Any]) -> None:
    body["replaces"] = "nothing"


def of_no_state(body: dict[str, Any]) -> None:
    body["judged_on"]["revision"] += 1_000_000


@pytest.mark.parametrize(
    ("forge", "complaint"),
    [
        (other_node, "run again it is {'evictions'"), (fewer_late, "had not ended"), (other_life, "had not ended"),
        (sooner, "is not given up"), (held_longer, "run again it is {'evictions'"),
        (not_recorded, "which was not recorded before it"),
        (of_no_state, "which no replay has"),
    ],
)  # fmt: skip
def test_a_replacement_that_differs_shows_in_the_history(
    forge: Callable[[dict[str, Any]], None], complaint: str, replacing: World
) -> None:
    events, decisions = replacing.bus.history[EVENTS], replacing.bus.history[DECISIONS]
    assert [*broken_in(events, decisions, replacing.policy)] == []
    (at,) = (at for at, one in enumerate(decisions) if _replaces(one))
    envelopes = msgpack.unpackb(decisions[at].fields["batch"])
    (body,) = (one["body"] for one in envelopes if one["body"].get("replaces"))
    forge(body)
    forged = replace(decisions[at], fields={**decisions[at].fields, "batch": msgpack.packb(envelopes)})
    told = [*broken_in(events, [*decisions[:at], forged, *decisions[at + 1 :]], replacing.policy)]
    assert any(complaint in sentence and body["plan_id"] in sentence for sentence in told)


def _replaces(entry: Entry) -> bool:
    return any(one["body"].get("replaces") for one in msgpack.unpackb(entry.fields["batch"]))


@pytest.mark.parametrize(
    ("takes", "complaint"),
    [(broken.needless, "(8) plan"), (broken.deserved, "(6) plan"), (broken.protected, "(7) plan")],
    ids=["takes more than it needs", "takes what is deserved", "takes what must stay"],
)
def test_a_judge_that_takes_one_task_too_many_shows_in_the_history(
    takes: Callable[[Statement, Snapshot, int], bool], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "judge", broken.greedy(takes))
    assert any(complaint in sentence for sentence in _told())


def _told() -> Iterator[str]:
    for seed in SEEDS:
        yield from found(seed)
