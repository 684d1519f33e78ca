"""What profile ``koordinator`` promises for a job that waits, by trying every set of victims and every place.

Written from `docs/profiles.md` on the cluster file alone; it shares no code with the solver, the plugins or the law.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from math import inf
from typing import Any, NamedTuple

from tests.support.lending_law import Document, Holds, LendingLaw

#: Of each task of the job a node, and the number of a card there (-1: none).
Places = dict[str, tuple[str, int]]
Harm = tuple[Any, ...]
ROOT = "the cluster"
#: How high the levels are above nodes.
HEIGHT = {"block": 0, "spine": 1, None: 2}


class Task(NamedTuple):
    """A task of the cluster file; without a node it waits."""

    holds: Holds
    node: str
    part: int
    card: int
    app: str
    repels: tuple[str, ...]
    subgroup: str
    priority: int
    preemptible: bool

    @property
    def name(self) -> str:
        return self.holds.name

    @property
    def group(self) -> str:
        return self.holds.group

    def asks(self, resource: str) -> int:
        return 1 if resource == "pods" else self.holds.of(resource)


class Room(NamedTuple):
    """Room for the job that some lawful victims make: in which layer and domain, what it costs, and for which tasks."""

    layer: int
    harm: Harm
    domain: str
    gone: tuple[Task, ...]
    way: tuple[Task, ...]


class EverySet:
    """One cluster file, and the job in it: the podgroups of which no task runs."""

    def __init__(self, document: Document) -> None:
        self._document, self._purpose = document, document["policy"]["actions"][-1]
        self.groups = {one["name"]: one for one in document["podgroups"]}
        self.tasks = [_task(one, said) for one in document["podgroups"] for said in one["tasks"]]
        running = {task.group for task in self.tasks if task.node}
        self.job = [name for name in self.groups if name not in running]
        self._queue = self.groups[self.job[0]]["queue"]
        held = [task.holds for task in self.tasks]
        self._law = LendingLaw(document, held, self._queue, reclaims=self._purpose == "reclaim")
        self.domains = self._all_domains()

    # -- victims -------------------------------------------------------------------------------------------------------

    @cached_property
    def candidates(self) -> list[Task]:
        """Tasks that may go, each looked at alone."""
        return [task for task in self.tasks if task.node and self._may_go(task)]

    def _may_go(self, task: Task) -> bool:
        group = self.groups[task.group]
        if not task.preemptible:
            return False
        if self._purpose == "reclaim":
            return bool(group["queue"] != self._queue)
        priority = min(self.groups[one]["priority"] for one in self.job)
        return bool(group["queue"] == self._queue and max(group["priority"], task.priority) < priority)

    def lawful(self, gone: Sequence[Task], way: Sequence[Task]) -> bool:
        """Whether quotas permit that some tasks of the job start and others go."""
        return self._law.allows([task.holds for task in gone], [task.holds for task in way])

    def harm(self, gone: Sequence[Task], way: Sequence[Task]) -> Harm:
        """What a set of victims costs, smaller is better.

        In reclaim the queue first; then the highest priority, how many podgroups break, the work that these lose and
        that others lose, and the number of victims.
        """
        unit = {r: sum(task.asks(r) for task in way) for r in ("cpu", "gpu")}
        broken, surplus = Counter[int](), Counter[int]()
        losers = {task.group: self.groups[task.group] for task in gone}
        falls = [name for name in losers if self._whole(name, ()) and not self._whole(name, gone)]
        for name, group in losers.items():
            running = [task for task in self.tasks if task.group == name and task.node]
            level = int(group["priority"]) if self._purpose == "preempt" else 0
            if name in falls:
                broken[level] += self._work(group, running, unit)
            elif self._whole(name, ()):
                surplus[level] += self._work(group, [task for task in running if task in gone], unit)
        rank = max((self._law.rank(group["queue"]) for group in losers.values()), default=0)
        highest = max((int(group["priority"]) for group in losers.values()), default=-inf)
        works = [tuple((at, round(one[at], 6)) for at in sorted(one, reverse=True)) for one in (broken, surplus)]
        return rank, highest, len(falls), *works, len(gone)

    def _work(self, group: Document, tasks: Sequence[Task], unit: Mapping[str, int]) -> Any:
        since = group.get("last_checkpoint")
        hours = 0.0 if since is None else max(self._document["now"] - since, 0) / 3600
        return sum(task.asks(r) / many for task in tasks for r, many in unit.items() if many) * (1 + hours)

    def _whole(self, name: str, gone: Sequence[Task]) -> bool:
        return self.reaches(name, [t for t in self.tasks if t.group == name and t.node and t not in gone])

    def reaches(self, name: str, have: Sequence[Task]) -> bool:
        """Whether some tasks are the minimum of their podgroup, and of as many subgroups as it needs."""
        group = self.groups[name]
        parts = group.get("subgroups", [])
        whole = sum(sum(task.subgroup == one["name"] for task in have) >= one["min_available"] for one in parts)
        return bool(len(have) >= group["min_available"] and whole >= group.get("min_subgroups", len(parts)))

    # -- places --------------------------------------------------------------------------------------------------------

    @cached_property
    def ways(self) -> list[tuple[Task, ...]]:
        """Every set of waiting tasks that is the minimum of all podgroups, and of which none can be spared."""
        waits, found = [task for task in self.tasks if task.group in self.job], list[tuple[Task, ...]]()
        for many in range(1, len(waits) + 1):
            for some in combinations(waits, many):
                enough = all(self.reaches(name, [task for task in some if task.group == name]) for name in self.job)
                if enough and not any(set(one) <= set(some) for one in found):
                    found.append(some)
        return found

    @property
    def layers(self) -> list[list[str]]:
        """Domains by layer, in the order in which they are tried."""
        said = self.groups[self.job[0]].get("topology", {})
        widest = HEIGHT[said.get("required")]
        first = HEIGHT[said["preferred"]] if "preferred" in said else widest
        return [self._at(height) for height in range(first, widest + 1)]

    def _at(self, height: int) -> list[str]:
        return [name for name, (at, _) in self.domains.items() if at == height]

    def _all_domains(self) -> dict[str, tuple[int, list[str]]]:
        """The height and the nodes of each domain; a node is one too, of height -1."""
        said, names = self._document["topology"]["domains"], [node["name"] for node in self._document["nodes"]]
        found = {name: (-1, [name]) for name in names}
        found |= {one["name"]: (HEIGHT["block"], list(one["nodes"])) for one in said if one["level"] == "block"}
        for one in (one for one in said if one["level"] == "spine"):
            inside = [node for two in said if two.get("parent") == one["name"] for node in two["nodes"]]
            found[one["name"]] = (HEIGHT["spine"], inside)
        return found | {ROOT: (HEIGHT[None], names)}

    def fits(self, way: Sequence[Task], gone: Sequence[Task], domain: str) -> bool:
        """Whether a domain has places for some tasks of the job once victims have gone."""
        return next(self.places(way, gone, domain), None) is not None

    def places(self, way: Sequence[Task], gone: Sequence[Task], domain: str) -> Iterator[Places]:
        """All that it has."""
        nodes = self.domains[domain][1]
        room = Counter[tuple[str, str]]()
        for node in (one for one in self._document["nodes"] if one["name"] in nodes):
            room.update({(node["name"], r): amount for r, amount in node["allocatable"].items()})
            room.update({(node["name"], str(at)): 8 for at in range(len(node.get("cards", [])))})
        there = [(task, task.node) for task in self.tasks if task.node in nodes and task not in gone]
        for task, node in there:
            _hold(room, task, node, task.card, -1)
        order = sorted(way, key=lambda task: (-task.asks("gpu"), -task.part, task.name))
        yield from (found for found in _placed(order, nodes, room, there, {}) if self._rules_hold(way, found))

    def _rules_hold(self, way: Sequence[Task], places: Places) -> bool:
        """Whether subgroups stay in their layers, and domains take multiples."""
        for group, part in ((one, part) for one in self.job for part in self.groups[one].get("subgroups", [])):
            level = part.get("topology", {}).get("required")
            nodes = {places[task.name][0] for task in way if (task.group, task.subgroup) == (group, part["name"])}
            if level and nodes and not any(nodes <= set(self.domains[one][1]) for one in self._at(HEIGHT[level])):
                return False
        multiples = self.groups[self.job[0]].get("topology", {}).get("multiples", {})
        return all(
            sum(node in self.domains[one][1] for node, _ in places.values()) % many == 0
            for level, many in multiples.items()
            for one in self._at(HEIGHT[level])
        )

    # -- room ----------------------------------------------------------------------------------------------------------

    def sets(self, way: Sequence[Task], domain: str) -> Iterator[tuple[Task, ...]]:
        """Every lawful set of victims that makes room for some tasks in a domain, the least harmful first.

        Where the job's queue is full, tasks outside the domain may go for the quota.
        """
        nodes, full = self.domains[domain][1], self._purpose == "preempt" and not self.lawful((), way)
        here = [task for task in self.candidates if task.node in nodes or full]
        if not self.fits(way, here, domain):
            return
        every = [some for many in range(len(here) + 1) for some in combinations(here, many)]
        every.sort(key=lambda some: self.harm(some, way))
        yield from (some for some in every if self.lawful(some, way) and self.fits(way, some, domain))

    def best(self, ways: Sequence[tuple[Task, ...]], layers: Sequence[int]) -> Room | None:
        """The least harm in the first of some layers that has room for one of the ways."""
        for layer in layers:
            rooms = []
            for way, domain in product(ways, self.layers[layer]):
                some = next(self.sets(way, domain), None)
                rooms += [] if some is None else [Room(layer, self.harm(some, way), domain, some, way)]
            if rooms:
                return min(rooms, key=lambda room: room.harm)
        return None


def _task(group: Document, said: Document) -> Task:
    asks, node, lasts = said["request"], said.get("node", ""), not group.get("preemptible", True)
    holds = Holds(said["name"], group["name"], group["queue"], bool(node), lasts, asks["cpu"], asks.get("gpu", 0))
    return Task(
        holds, node, int(said.get("card_request", 0)), int(said.get("card", "c-1")[1:]),
        said.get("labels", {}).get("app", ""),
        tuple(one["match_labels"]["app"] for one in said.get("pod_anti_affinity", [])), said.get("subgroup", ""),
        int(said["priority"] if "priority" in said else group["priority"]), said.get("preemptible", True) and not lasts,
    )  # fmt: skip


def _placed(
    way: Sequence[Task], nodes: Sequence[str], room: Counter[tuple[str, str]], there: list[tuple[Task, str]],
    places: Places,
) -> Iterator[Places]:  # fmt: skip
    """Every way to add the tasks to ``places``; what is passed is as before after each of them."""
    if not way:
        yield dict(places)
        return
    task = way[0]
    for node, card in product(nodes, (0, 1) if task.part else (-1,)):
        if not _fits(room, task, node, card) or any(_repel(task, other) for other, on in there if on == node):
            continue
        _hold(room, task, node, card, -1)
        there.append((task, node))
        yield from _placed(way[1:], nodes, room, there, {**places, task.name: (node, card)})
        there.pop()
        _hold(room, task, node, card, 1)


def _fits(room: Counter[tuple[str, str]], task: Task, node: str, card: int) -> bool:
    enough = all(task.asks(r) <= max(room[node, r], 0) for r in ("cpu", "gpu", "pods"))
    return enough and (not task.part or room[node, str(card)] >= task.part)


def _hold(room: Counter[tuple[str, str]], task: Task, node: str, card: int, sign: int) -> None:
    for r in ("cpu", "gpu", "pods"):
        room[node, r] += sign * task.asks(r)
    if task.part:
        room[node, str(card)] += sign * task.part


def _repel(one: Task, other: Task) -> bool:
    return other.app in one.repels or one.app in other.repels
