"""Small clusters with everything that decides, and the cheapest lawful plan for a gang, by trying all there are.

The oracle knows no bundle, no slot and no bound: it takes every set of tasks that may go, adds what breaks with them,
asks the law about the whole, and puts the waiting tasks on every combination of nodes, the cheapest set first. What it
shares with the solvers is the law (the plugins' own questions), the price, and the check of a finished statement.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from actors.cli.simulate import open_case
from pipeline.cluster.arrays import NONE, Longs, Rows
from pipeline.cluster.rules.minimum import has_minimum
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.what_if import WhatIf
from pipeline.decision.attempt import Attempt
from pipeline.decision.plan import making_room
from pipeline.decision.price import Price, lost_work, price_of
from pipeline.decision.statement import Statement
from pipeline.placement.domains import domains_of
from pipeline.placement.feasibility import feasible
from pipeline.placement.filters import well_placed
from pipeline.placement.outranked import outranked_promises, unpromised
from pipeline.plugins.host import Host
from pipeline.plugins.plugin import Preemptor
from pipeline.policy import Purpose
from pipeline.propose import host_of

GPU = "nvidia.com/gpu"
#: What a cluster may be about, beside gangs of one shape.
FEATURES = ("shapes", "elastic", "roles", "subgroups", "required", "preferred", "repelled", "cards", "promises")
NOW = 10_000.0
_NODES, _TASKS = 4, 8


@dataclass(frozen=True)
class Least:
    """The cheapest lawful victims, what they make room for, and the price."""

    victims: Rows
    price: Price


def attempt_of(document: dict[str, Any], purpose: Purpose) -> Attempt:
    """What the podgroup ``waits`` of a cluster file asks for."""
    case = open_case(document)
    names = [podgroup["name"] for podgroup in document["podgroups"]]
    row = (names.index("waits"),)
    return Attempt(case.snapshot, case.policy, purpose, row, None, case.now, purpose.value)


# -- clusters ----------------------------------------------------------------------------------------------------------


def crowded(seed: int, purpose: Purpose, profile: str = "default", tasks: int = _TASKS) -> dict[str, Any]:
    """Up to some tasks of a few podgroups on four nodes in two racks, and a gang that waits; some features of all."""
    rng = random.Random(seed)
    about = {feature for feature in FEATURES if rng.random() < 0.25}
    if "cards" in about:
        about -= {"roles", "subgroups"}
    nodes = [_node(n, about) for n in range(_NODES)]
    room = [node["allocatable"][GPU] for node in nodes]
    cards = [[8, 8] for _ in nodes]
    podgroups, left = [], tasks
    for at in range(rng.randint(2, 5)):
        many = min(rng.choice([1, 1, 2, 3, 4]), left)
        some = [_running(rng, f"g{at}-{n}", about, room, cards) for n in range(many)]
        some = [task for task in some if task]
        left -= len(some)
        if some:
            podgroups.append(_podgroup(rng, f"g{at}", some, about, purpose))
    if "promises" in about:
        podgroups += _promised(rng, room, purpose)
    podgroups.append(_waiting(rng, about, purpose))
    free = rng.choice([0, 0, 0, 1])
    for node, spare in zip(nodes, room, strict=True):
        node["allocatable"][GPU] -= max(spare - (free if rng.random() < 0.5 else 0), 0)  # type: ignore[operator]
    return {
        "version": 1, "id": f"crowded-{seed}", "now": NOW,
        "policy": {"profile": profile, "actions": [purpose.value]},
        "nodes": nodes, "queues": _queues(rng, purpose), "podgroups": podgroups,
        "topology": {
            "levels": ["rack"],
            "domains": [{"name": f"r{r}", "level": "rack", "nodes": [f"n{2 * r}", f"n{2 * r + 1}"]} for r in (0, 1)],
        },
    }  # fmt: skip


def _node(at: int, about: set[str]) -> dict[str, Any]:
    node = {"name": f"n{at}", "allocatable": {"cpu": 8, GPU: 9, "pods": 20}}
    if "cards" in about:
        node["cards"] = [{"name": f"c{card}", "capacity": "8"} for card in (0, 1)]
    return node


def _queues(rng: random.Random, purpose: Purpose) -> list[dict[str, Any]]:
    if purpose is Purpose.PREEMPT:
        return [{"name": "a"}, {"name": "b"}]
    return [
        {"name": "a", "deserved": {GPU: rng.randint(0, 3), "cpu": rng.choice([0, 0, 1, 2])}},
        {"name": "c", "deserved": {GPU: rng.randint(0, 3), "cpu": rng.choice([0, 0, 1, 2])}},
        {"name": "b", "deserved": {GPU: rng.choice([6, 12]), "cpu": 100}},
    ]


def _running(
    rng: random.Random, name: str, about: set[str], room: list[int], cards: list[list[int]]
) -> dict[str, Any] | None:
    node, gpu = rng.randrange(_NODES), rng.choice([1, 1, 2, 3] if "shapes" in about else [1, 2])
    if room[node] < gpu:
        return None
    task: dict[str, Any] = {"name": name, "request": {GPU: gpu, "cpu": 1}, "status": "Running", "node": f"n{node}"}
    if "cards" in about and rng.random() < 0.7:
        card, part = rng.randrange(2), rng.choice([3, 4, 8])
        if cards[node][card] >= part:
            cards[node][card] -= part
            task |= {"request": {"cpu": 1}, "card_request": str(part), "card": f"c{card}"}
            gpu = 0
    room[node] -= gpu
    if "repelled" in about and rng.random() < 0.4:
        task["labels"] = {"app": "x"}
    if rng.random() < 0.06:
        task["preemptible"] = False
    return task


def _podgroup(
    rng: random.Random, name: str, tasks: list[dict[str, Any]], about: set[str], purpose: Purpose
) -> dict[str, Any]:
    many = len(tasks)
    least = rng.randint(0, many) if "elastic" in about or rng.random() < 0.3 else many
    queue = "a" if purpose is Purpose.PREEMPT else rng.choice(["a", "a", "c"])
    podgroup: dict[str, Any] = {
        "name": name, "queue": queue, "priority": rng.randint(0, 2), "min_available": least,
        "created": float(rng.randint(0, 3)), "tasks": tasks,
    }  # fmt: skip
    if rng.random() < 0.4:
        podgroup["last_checkpoint"] = NOW - 3600.0 * rng.randint(0, 3)
    if "roles" in about and many > 1 and rng.random() < 0.6:
        podgroup["roles"] = {"driver": {"min": rng.randint(0, 1)}, "worker": {"min": rng.randint(0, many - 1)}}
        for n, task in enumerate(tasks):
            task["role"] = "worker" if n else "driver"
    elif "subgroups" in about and many > 1 and rng.random() < 0.6:
        podgroup["subgroups"] = [{"name": f"s{n}", "min_available": rng.randint(1, 2)} for n in range(2)]
        podgroup["min_subgroups"] = rng.randint(1, 2)
        for n, task in enumerate(tasks):
            task["subgroup"] = f"s{n % 2}"
    return podgroup


def _promised(rng: random.Random, room: list[int], purpose: Purpose) -> list[dict[str, Any]]:
    """Podgroups that were promised nodes before: less and more important ones."""
    found = []
    for at, priority in enumerate((0, 9)):
        node = rng.randrange(_NODES)
        if rng.random() < 0.7 and room[node] > 0:
            room[node] -= 1
            task = {"name": f"p{at}", "request": {GPU: 1, "cpu": 1}, "status": "Pending", "nominated_node": f"n{node}"}
            queue = "a" if purpose is Purpose.PREEMPT else "b"
            found.append({"name": f"p{at}", "queue": queue, "priority": priority, "min_available": 1, "tasks": [task]})
    return found


def _waiting(rng: random.Random, about: set[str], purpose: Purpose) -> dict[str, Any]:
    many = rng.randint(1, 3)
    sizes = [rng.randint(1, 3)] * many
    if "shapes" in about:
        sizes = [rng.randint(1, 3) for _ in range(many)]
    tasks: list[dict[str, Any]] = [{"name": f"w{n}", "request": {GPU: gpu, "cpu": 1}} for n, gpu in enumerate(sizes)]
    if "cards" in about and rng.random() < 0.7:
        part = rng.choice([4, 5, 8])
        tasks = [{"name": f"w{n}", "request": {"cpu": 1}, "card_request": str(part)} for n in range(many)]
    gang: dict[str, Any] = {
        "name": "waits", "queue": "a" if purpose is Purpose.PREEMPT else "b", "priority": 5, "min_available": many,
        "tasks": tasks,
    }  # fmt: skip
    if "elastic" in about:
        gang["min_available"] = rng.randint(1, many)
    if "repelled" in about:
        for task in tasks:
            if rng.random() < 0.8:
                task["pod_anti_affinity"] = [
                    {"topology_key": "kubernetes.io/hostname", "match_labels": {"app": rng.choice("xxy")}}
                ]
            task["labels"] = {"app": "y"}
    for kind in ("required", "preferred"):
        if kind in about:
            gang["topology"] = {kind: "rack"}
    if "subgroups" in about and many > 1 and rng.random() < 0.6:
        gang["subgroups"] = [{"name": f"s{n}", "min_available": 1} for n in range(2)]
        gang["min_subgroups"] = rng.randint(1, 2)
        gang["min_available"] = min(gang["min_available"], gang["min_subgroups"])
        for n, task in enumerate(tasks):
            task["subgroup"] = f"s{n % 2}"
        if rng.random() < 0.5:
            gang["subgroups"][0]["topology"] = {"required": "rack"}
    elif "roles" in about and many > 1 and rng.random() < 0.6:
        gang["roles"] = {"driver": {"min": 1}, "worker": {"min": rng.randint(0, many - 1)}}
        for n, task in enumerate(tasks):
            task["role"] = "worker" if n else "driver"
    return gang


# -- the oracle --------------------------------------------------------------------------------------------------------


def least_of(attempt: Attempt) -> Least | None:
    """The cheapest of all lawful ways; less important promises may be withdrawn where that spares running work.

    For another place at the same loss they stay.
    """
    found = _least_here(attempt)
    rows = outranked_promises(attempt)
    if len(rows) == 0 or (found is not None and len(found.victims) == 0):
        return found
    other = _least_here(unpromised(attempt, rows))
    if other is None or (found is not None and _anywhere(found.price) <= _anywhere(other.price)):
        return found
    return other


def _anywhere(price: Price) -> Price:
    return replace(price, tier=0, domain=0)


def _least_here(attempt: Attempt) -> Least | None:
    host, best, ways = host_of(attempt), None, minima(attempt)
    asked = [attempt.snapshot.request[tasks].sum(axis=0) for tasks in ways]
    for tasks, request in zip(ways, asked, strict=True):
        preemptor = Preemptor(attempt.podgroups, request, attempt.purpose)
        if attempt.purpose is Purpose.RECLAIM and not host.preemptive(preemptor):
            continue
        for domain in domains_of(host, attempt.podgroups, attempt.purpose).tolist():
            found = _least_in(attempt, host, preemptor, tasks, domain, best, np.max(asked, axis=0))
            best = found or best
    return best


def minima(attempt: Attempt) -> list[Rows]:
    """Every set of waiting tasks that makes up the minimum and of which none can be left out."""
    snapshot, (podgroup,) = attempt.snapshot, attempt.podgroups
    waiting = [row for row in snapshot.pending(podgroup).tolist() if snapshot.tasks.nominated[row] == NONE]
    found: list[frozenset[int]] = []
    for many in range(1, len(waiting) + 1):
        for some in combinations(waiting, many):
            if any(one <= set(some) for one in found):
                continue
            if has_minimum(snapshot, podgroup, NONE, np.array(some, np.int64)):
                found.append(frozenset(some))
    return [np.array(sorted(some), np.int64) for some in found]


def _least_in(
    attempt: Attempt, host: Host, preemptor: Preemptor, tasks: Rows, domain: int, best: Least | None, unit: Longs
) -> Least | None:
    """The cheapest victims in one domain if they are cheaper than the best so far; ``unit``: see ``priced``."""
    snapshot, candidate = attempt.snapshot, host.candidates(preemptor)
    start, stop = int(snapshot.topology.start[domain]), int(snapshot.topology.stop[domain])
    node = snapshot.tasks.node
    here = np.flatnonzero(candidate & (node >= start) & (node < stop)).tolist()
    sets = dict[tuple[int, ...], Price]()
    for some in (c for many in range(len(here) + 1) for c in combinations(here, many)):
        gone = with_their_gangs(snapshot, some)
        if tuple(gone.tolist()) in sets or not candidate[gone].all():
            continue
        sets[tuple(gone.tolist())] = _price(attempt, host, gone, domain, unit)
    for gone, price in sorted(sets.items(), key=lambda entry: (entry[1], entry[0])):
        if best is not None and best.price <= price:
            return None
        victims = np.array(gone, np.int64)
        if host.validate_set(preemptor, victims) and stands(attempt, host, tasks, victims, (start, stop)):
            return Least(victims, price)
    return None


def priced(attempt: Attempt, victims: Rows, domain: int, tasks: Rows | None = None) -> Price:
    """The price of victims in units of what some tasks ask for; else of the most that any way asks for."""
    ways = minima(attempt) if tasks is None else [tasks]
    asked = [attempt.snapshot.request[way].sum(axis=0) for way in ways]
    return _price(attempt, host_of(attempt), victims, domain, np.max(asked, axis=0))


def _price(attempt: Attempt, host: Host, victims: Rows, domain: int, unit: Longs) -> Price:
    snapshot, queue, rank = attempt.snapshot, attempt.snapshot.podgroups.queue, None
    if attempt.purpose is Purpose.RECLAIM:
        rank = host.victim_queue_rank(int(queue[attempt.podgroups[0]]))[queue]
    return price_of(snapshot, victims, unit, lost_work(snapshot, attempt.now), rank, domain)


def with_their_gangs(snapshot: Snapshot, some: tuple[int, ...]) -> Rows:
    """The tasks, and all running members of the podgroups that break without them."""
    rows, owner, nobody = np.array(some, np.int64), snapshot.tasks.podgroup, np.zeros(0, np.int64)
    after = WhatIf.of(snapshot).evicting(rows)
    for group in np.unique(owner[rows]).tolist():
        if has_minimum(snapshot, group, NONE, nobody) and not has_minimum(after, group, NONE, nobody):
            rows = np.union1d(rows, np.flatnonzero((owner == group) & (snapshot.tasks.node >= 0)))
    return rows


def stands(attempt: Attempt, host: Host, tasks: Rows, victims: Rows, nodes: tuple[int, int]) -> bool:
    """Whether the tasks can be placed on the nodes in any way once the victims have left."""
    snapshot = attempt.snapshot
    room = snapshot.room.future.copy()
    np.add.at(room, snapshot.tasks.node[victims], snapshot.request[victims])
    return any(
        feasible(snapshot, made) and well_placed(host, made)
        for made in _statements(attempt, host, tasks, victims, nodes, room)
    )


def _statements(
    attempt: Attempt, host: Host, tasks: Rows, victims: Rows, nodes: tuple[int, int], room: Any
) -> Iterator[Statement]:
    """Every assignment of the tasks to nodes whose resources suffice."""
    snapshot = attempt.snapshot
    request = snapshot.request[tasks]

    def assigned(at: int, chosen: list[int]) -> Iterator[list[int]]:
        if at == len(tasks):
            yield list(chosen)
            return
        for node in range(*nodes):
            if (room[node] >= request[at])[request[at] > 0].all():
                room[node] -= request[at]
                yield from assigned(at + 1, [*chosen, node])
                room[node] += request[at]

    for chosen in assigned(0, []):
        node = np.array(chosen, np.int64)
        yield making_room(attempt, victims, tasks, node, host.cards_for(tasks, node, victims))
