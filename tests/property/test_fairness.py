"""Fairness whatever the order, and the sticky domain, on small random clusters.

Both are promised by "Gang-Aware Preemption and Reclaim", sections 3.5 and 4.3.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cluster.arrays import NONE, Rows
from pipeline.cluster.resources import PODS
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.decided import carried_out
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Context, Preemptor
from pipeline.policy import Purpose
from tests.support.deciding import chain_of, run, unit_of
from tests.support.depth import sampled
from tests.support.strategies import GPU, LEVELS, documents

some = settings(max_examples=sampled(120))


@st.composite
def contended(draw: st.DrawFn, actions: tuple[str, ...] = ("reclaim",), profile: str = "default") -> dict[str, Any]:
    """Small clusters in which those who wait deserve more than they have, and those who run may have too much."""
    document = draw(documents(profile=profile))
    document["policy"] |= {"actions": list(actions)}
    entitled = {queue["name"]: queue for queue in document["queues"]}
    entitled["a"]["deserved"] = {GPU: draw(st.integers(0, 4)), "cpu": draw(st.integers(0, 4))}
    entitled["b"]["deserved"] = {GPU: 12, "cpu": 40}
    for queue in entitled.values():
        queue.pop("guarantee", None)
        queue.pop("capability", None)
    for podgroup in document["podgroups"]:
        runs = any(task["status"] == "Running" for task in podgroup["tasks"])
        podgroup |= {"queue": "a" if runs else "b"}
        if not runs and draw(st.booleans()):
            podgroup["topology"] = {"required": draw(st.sampled_from(LEVELS))}
    return document


def reclaimers(document: dict) -> Iterator[tuple[Host, Preemptor, Rows, list[int]]]:
    """Of each podgroup that waits: the host, itself, its candidates in reclaim, and the queues that it takes from."""
    for case, snapshot, _ in run(document):
        host = Host(Context(snapshot, case.policy, case.now))
        for podgroup in np.flatnonzero(host.starving & host.valid).tolist():
            waiting = snapshot.pending(podgroup)
            request = snapshot.shapes.request[snapshot.tasks.shape[waiting]].sum(axis=0)
            asked = Preemptor(tuple(unit_of(snapshot, podgroup)), request, Purpose.RECLAIM)
            own = chain_of(snapshot, int(snapshot.podgroups.queue[podgroup]))
            others = [queue for queue in range(len(snapshot.queues)) if queue not in own]
            yield host, asked, np.flatnonzero(host.candidates(asked)), others


def below(snapshot: Snapshot, gone: Rows, queues: list[int]) -> list[tuple[int, int]]:
    """Queue and resource of which a queue loses something and keeps less than it deserves once ``gone`` have left."""
    after = WhatIf.of(snapshot).evicting(gone).allocated
    lost, least = snapshot.allocated - after, np.maximum(snapshot.queues.deserved, snapshot.queues.guarantee)
    found = (lost > 0) & (after < least)
    found[:, PODS] = False
    return [(queue, int(r)) for queue in queues for r in np.flatnonzero(found[queue])]


@some
@given(contended())
def test_no_cycle_leaves_a_queue_from_which_it_reclaims_below_what_it_deserves(document):
    """Statement by statement, and at the end of the cycle as far as nothing but reclaim took from the queue."""
    for _, before, done in run(document, cycles=2):
        snapshot, taken, settled = before, np.zeros(0, np.int64), set(range(len(before.queues)))
        for made in done.statements:
            if len(made.evictions):
                own = chain_of(snapshot, int(snapshot.podgroups.queue[made.preemptor]))
                settled -= set(own)
                if made.action == "reclaim":
                    assert below(snapshot, made.evictions, [q for q in range(len(before.queues)) if q not in own]) == []
                    taken = np.concatenate([taken, made.evictions])
            snapshot = carried_out(made, snapshot, 0.0)
        lost = before.allocated - WhatIf.of(before).evicting(taken).allocated
        for queue in settled:
            least = np.maximum(before.queues.deserved[queue], before.queues.guarantee[queue])
            short = (lost[queue] > 0) & (done.snapshot.allocated[queue] < least)
            assert [r for r in np.flatnonzero(short) if r != PODS] == []


@some
@given(contended(), st.integers(0, 99))
def test_whatever_the_order_of_the_candidates_no_victim_takes_its_queue_below_what_it_deserves(document, seed):
    """Quotas are used up along the order; another order may let others go, but never too many."""
    order = random.Random(seed)
    for host, asked, candidates, others in reclaimers(document):
        rows = candidates.tolist()
        order.shuffle(rows)
        chosen = np.array(rows, np.int64)[host.bundle_quota_filter(asked, np.array(rows, np.int64))]
        assert below(host.context.snapshot, chosen, others) == []


@some
@given(contended(), st.integers(0, 99))
def test_whether_victims_are_lawful_together_does_not_depend_on_their_order(document, seed):
    order = random.Random(seed)
    for host, asked, candidates, others in reclaimers(document):
        some_of_them = [row for row in candidates.tolist() if order.random() < 0.6]
        answer = host.validate_set(asked, np.array(some_of_them, np.int64))
        for _ in range(4):
            order.shuffle(some_of_them)
            assert host.validate_set(asked, np.array(some_of_them, np.int64)) == answer
        if answer:
            assert below(host.context.snapshot, np.array(some_of_them, np.int64), others) == []


@some
@given(contended(profile="volcano"), st.sampled_from(["preempt", "reclaim"]), st.booleans())
def test_a_hard_gang_is_nominated_into_one_domain_task_by_task(document, action, simulated):
    """The retrofit (section 4.3): what a cycle nominates of a podgroup lies in one domain of its level."""
    document["policy"] |= {"actions": [action], "action_arguments": {"preempt": {"topology_aware": simulated}}}
    document["policy"]["plugins"] = {"gang": {"enabled": {"preemptable": False, "reclaimable": False}}}
    for podgroup in document["podgroups"] if action == "preempt" else ():
        podgroup |= {"queue": "a", "priority": podgroup["priority"] + 5 * (podgroup["queue"] == "b")}
    for _, snapshot, done in run(document, cycles=2):
        tasks, groups, topology = done.snapshot.tasks, done.snapshot.podgroups, snapshot.topology
        moved = {row for made in done.statements for row in made.nominated.tolist() if tasks.nominated[row] != NONE}
        for podgroup in {int(tasks.podgroup[row]) for row in moved}:
            level = int(groups.required_level[podgroup])
            nodes = {int(tasks.nominated[row]) for row in moved if tasks.podgroup[row] == podgroup}
            ran = snapshot.tasks_of(podgroup)
            nodes |= {int(node) for node in snapshot.tasks.node[ran] if node != NONE}
            assert level == NONE or any(
                topology.start[domain] <= min(nodes) and max(nodes) < topology.stop[domain]
                for domain in range(len(topology))
                if topology.level[domain] == level
            )
