"""What is skipped because something no harder found nothing would have found nothing itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.configuration.profiles import load_profile
from pipeline.cluster.snapshot import Snapshot
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import Plan
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context
from pipeline.policy import Purpose
from pipeline.propose import propose
from pipeline.solvers.scenarios import signatures
from tests.support.builders import Gang, Task, cluster

KAI, NODES = load_profile("kai"), 3
ASKS = ((Purpose.PREEMPT, "preempt"), (Purpose.RECLAIM, "reclaim"), (Purpose.CONSOLIDATE, "consolidation"))
running = st.builds(Task, node=st.integers(0, NODES - 1), gpu=st.integers(1, 3))


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Snapshot, int]:
    """A full cluster of two queues, and podgroups of few sizes that wait; how many of them run."""
    gangs = []
    for _ in range(draw(st.integers(0, 4))):
        tasks = draw(st.lists(running, min_size=1, max_size=3))
        least, priority = draw(st.integers(1, len(tasks))), draw(st.integers(0, 2))
        gangs.append(Gang(tasks, least, priority=priority, queue=draw(st.integers(0, 1))))
    used = [sum(task.gpu for one in gangs for task in one.tasks if task.node == node) for node in range(NODES)]
    waiting = []
    for _ in range(draw(st.integers(2, 5))):
        tasks = [Task(gpu=draw(st.integers(1, 3)))] * draw(st.integers(1, 3))
        least, priority = draw(st.integers(1, len(tasks))), draw(st.integers(1, 3))
        waiting.append(Gang(tasks, least, priority=priority, queue=draw(st.integers(0, 1))))
    nodes = [{"gpu": held + draw(st.integers(0, 2))} for held in used]
    return cluster(nodes, [*gangs, *waiting]), len(gangs)


def outcome(state: Snapshot, podgroup: int, purpose: Purpose, action: str) -> tuple[list[int], dict[int, int]] | None:
    """Victims, and node by task; None without a plan."""
    made = propose(Attempt(state, KAI, purpose, (podgroup,), None, 0.0, action), Host(Context(state, KAI, 0.0)))
    if not isinstance(made, Plan):
        return None
    said = made.statement
    return said.evictions.tolist(), dict(zip(said.nominated.tolist(), said.nominated_node.tolist(), strict=True))


@given(clusters())
def test_a_search_that_is_skipped_would_have_found_nothing(case: tuple[Snapshot, int]) -> None:
    shared, first = case
    for purpose, action in ASKS:
        for podgroup in range(first, len(shared.podgroups)):
            alone = replace(shared)  # it remembers no search
            assert outcome(shared, podgroup, purpose, action) == outcome(alone, podgroup, purpose, action)


def signature(priority: int, *counts: tuple[int, int]) -> signatures.Signature:
    return signatures.Signature(("law",), 0, priority, tuple((shape, 0, many) for shape, many in counts))


def test_more_of_the_same_kinds_is_no_easier_and_other_kinds_cannot_be_compared() -> None:
    small, more, other = signature(1, (0, 2)), signature(1, (0, 3), (1, 1)), signature(1, (1, 2))
    assert more.no_easier(small)
    assert small.no_easier(small)
    assert not small.no_easier(more)
    assert not small.no_easier(other)
    assert not other.no_easier(small)


def test_a_more_important_podgroup_may_find_what_a_less_important_one_does_not() -> None:
    assert not signature(2, (0, 2)).no_easier(signature(1, (0, 2)))


def test_only_the_smallest_failed_searches_are_kept() -> None:
    kept = signatures.Failed()
    for one in (signature(1, (0, 3)), signature(1, (0, 2)), signature(1, (0, 4))):
        kept.add(one, signatures.Reason.UNPLACEABLE)
    assert [one for one, _ in kept.found] == [signature(1, (0, 2))]


signs = st.builds(
    signatures.Signature,
    st.just(("law",)) | st.just(("other",)),
    st.integers(0, 1),
    st.integers(0, 2),
    st.dictionaries(st.integers(0, 3), st.integers(1, 3), max_size=3).map(
        lambda many: tuple((shape, 0, count) for shape, count in sorted(many.items()))
    ),
)


@given(st.lists(st.tuples(signs, st.sampled_from(signatures.Reason)), max_size=12))
def test_what_is_kept_is_what_a_look_at_all_of_them_would_keep(
    added: list[tuple[signatures.Signature, signatures.Reason]],
) -> None:
    kept, plain = signatures.Failed(), list[tuple[signatures.Signature, signatures.Reason]]()
    for one, why in added:
        said = next((reason for other, reason in plain if one.no_easier(other)), None)
        assert kept.reason(one) == said
        kept.add(one, why)
        if said is None:
            plain = [other for other in plain if not other[0].no_easier(one)] + [(one, why)]
        assert kept.found == plain


def test_what_asks_for_other_kinds_of_tasks_is_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, plain = signatures.Failed(), signatures.Signature.no_easier
    compared = list[signatures.Signature]()

    def spied(one: signatures.Signature, other: signatures.Signature) -> bool:
        compared.append(other)
        return plain(one, other)

    monkeypatch.setattr(signatures.Signature, "no_easier", spied)
    for shape in range(100):
        kept.add(signature(1, (shape, 2)), signatures.Reason.UNPLACEABLE)
    assert compared == []
    assert kept.reason(signature(1, (99, 2))) is signatures.Reason.UNPLACEABLE
    assert len(compared) == 1
