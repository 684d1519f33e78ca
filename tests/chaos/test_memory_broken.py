"""The schedules notice what is broken: each part here would let one of the invariants go."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from actors.commit import committer, replacement
from actors.ingestion import exported
from pipeline.actions.substitution import substitute
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.updates import fold
from pipeline.decision.statement import Statement
from tests.chaos import memory_broken as broken
from tests.chaos.eviction_windows import paced
from tests.chaos.memory_checks import run
from tests.chaos.memory_world import KAI, Parts

#: Played one by one until one notices, after that which is known to.
SEEDS = range(1, 61)


@pytest.mark.parametrize(
    ("parts", "complaint", "known"),
    [
        (Parts(ledger=broken.ForgetfulLedger), "was answered", 1),
        (Parts(ledger=broken.HastyLedger), "recorded 0 times", 1),
        (Parts(bus=broken.LeakyBus), "the fleet has it", 38),
        (Parts(bus=broken.SilentBus), "among the dead letters", 1),
        (Parts(bus=broken.EchoingBus), "recorded 2 times", 1),
        (Parts(dispatcher=broken.OneAtATime), "(2, 19)", 2),
        (Parts(dispatcher=broken.Unsteady), "(2, 19)", 4),
    ],
    ids=[
        "a ledger that forgets", "a ledger that loses", "a bus that loses",
        "a bus that buries nothing", "a bus that repeats", "a dispatcher that offers less than a cycle decides",
        "a dispatcher that does not decide the same twice",
    ],
)  # fmt: skip
def test_a_broken_part_is_caught(parts: Parts, complaint: str, known: int) -> None:
    _caught(parts, complaint, [known, *SEEDS])


def test_a_ledger_without_fencing_is_caught() -> None:
    # Seldom: a committer that was replaced mostly sees decisions in the state that it did not record, and records none.
    _caught(Parts(ledger=broken.UnfencedLedger), "under lease", [104, 79])


@pytest.mark.parametrize(
    ("takes", "complaint", "known"),
    [
        (broken.needless, "everything would fit and be lawful without that", 1),
        (broken.too_important, "goes for one of", 5),
        (broken.deserved, "(6) plan", 9),
        (broken.protected, "is protected", 1),
    ],
    ids=["takes more than it needs", "takes what is more important", "takes what is deserved", "takes what must stay"],
)
def test_a_judge_that_takes_one_task_too_many_is_caught(
    takes: Callable[[Statement, Snapshot, int], bool], complaint: str, known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "judge", broken.greedy(takes))
    _caught(Parts(), complaint, [known, *SEEDS])


def test_a_committer_that_replaces_decisions_otherwise_than_the_core_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "substitute", broken.substituted_otherwise(substitute))
    _caught(Parts(), "(2, 19) plan", [12])


def test_a_state_that_forgets_what_was_evicted_lately_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "with_evictions", lambda known, *_: known)
    parts = Parts(policy=paced(Parts().policy, in_window=5, in_window_of_queue=4, window_s=10.0))
    _caught(parts, "(20) from", [2, *SEEDS])


def test_a_file_of_the_state_that_forgets_where_tasks_move_to_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exported._Podgroups, "_place", broken.without_moves(exported._Podgroups._place))
    outcome = run(42, Parts(policy=KAI), turns=36, most=12)
    assert any("its file" in sentence for sentence in outcome.broken)


def _caught(parts: Parts, complaint: str, seeds: Iterable[int]) -> None:
    for seed in seeds:
        outcome = run(seed, parts)
        if any(complaint in sentence for sentence in outcome.broken):
            return
    pytest.fail(f"no schedule noticed: {complaint}")
