"""Small clusters for profile ``koordinator``, drawn by a seed: all that decides whether a job gets room, mixed.

Blocks of two nodes in spines, at most eight tasks that run, and a job of one or two podgroups that waits.
"""

import random
from typing import Any

Document = dict[str, Any]
#: What a cluster may be about, beside gangs of one shape.
FEATURES = ("shapes", "elastic", "subgroups", "group", "repelled", "cards", "layers", "multiples", "cores", "lasting",
            "tree", "tight")  # fmt: skip
NOW = 100_000.0
_TASKS = 8
_HOST = "kubernetes.io/hostname"


class LendingCluster:
    """Draws one cluster for ``preempt`` or ``reclaim``."""

    def __init__(self, seed: int, purpose: str, features: tuple[str, ...] = FEATURES) -> None:
        self._draw = random.Random(f"{purpose}-{seed}")
        self._purpose = purpose
        self.about = {one for one in features if self._draw.random() < 0.25}
        if "cards" in self.about:
            self.about -= {"subgroups", "multiples"}
        if "multiples" in self.about:
            self.about -= {"elastic", "subgroups", "group", "shapes", "repelled"}  # tasks of such a job are alike
        self._nodes = [f"n{at}" for at in range(self._draw.choice([3, 4, 4, 5, 6]))]
        self._left = {name: self._draw.choice([2, 3, 4]) for name in self._nodes}
        self._has = dict(self._left)
        self._parts = {name: [8, 8] for name in self._nodes}
        self._tasks = 0

    def document(self) -> Document:
        """The cluster file."""
        groups = [made for at in range(self._draw.randint(2, 6)) if (made := self._runs(at)) is not None]
        spare = 0 if self._draw.random() < 0.7 else 1
        for name, left in self._left.items():
            self._has[name] -= max(left - spare, 0)
        job = self._job()
        return {
            "version": 1, "now": NOW, "policy": {"profile": "koordinator", "actions": ["allocate", self._purpose]},
            "nodes": [self._node(name) for name in self._nodes],
            "topology": self._topology(), "queues": self._queues([*groups, *job]), "podgroups": [*groups, *job],
        }  # fmt: skip

    def _once_in(self, many: int) -> bool:
        return self._draw.randrange(many) == 0

    def _node(self, name: str) -> Document:
        node: Document = {"name": name, "allocatable": {"cpu": 16, "gpu": self._has[name], "pods": 20}}
        if "cards" in self.about:
            node["cards"] = [{"name": f"c{card}", "capacity": "8"} for card in (0, 1)]
        return node

    def _topology(self) -> Document:
        blocks = [self._nodes[at : at + 2] for at in range(0, len(self._nodes), 2)]
        domains: list[Document] = [{"name": f"s{at}", "level": "spine"} for at in range((len(blocks) + 1) // 2)]
        domains += [
            {"name": f"b{at}", "level": "block", "parent": f"s{at // 2}", "nodes": nodes}
            for at, nodes in enumerate(blocks)
        ]
        return {"levels": ["spine", "block"], "domains": domains}

    def _runs(self, at: int) -> Document | None:
        tasks: list[Document] = []
        for number in range(min(self._draw.choice([1, 1, 2, 3, 4]), _TASKS - self._tasks)):
            task = self._running(f"v{at}-{number}")
            tasks += [task] if task else []
        self._tasks += len(tasks)
        if not tasks:
            return None
        many = len(tasks)
        group: Document = {
            "name": f"v{at}", "queue": self._of(), "priority": self._draw.choice([1, 2, 3, 3, 9]), "phase": "Running",
            "min_available": self._draw.randint(0, many) if "elastic" in self.about or self._once_in(3) else many,
            "created": float(self._draw.randint(0, 3)), "tasks": tasks,
        }  # fmt: skip
        if self._once_in(3):
            group["last_checkpoint"] = NOW - 3600.0 * self._draw.randint(0, 3)
        if "lasting" in self.about and self._once_in(4):
            group["preemptible"] = False
        if "subgroups" in self.about and many > 1 and self._once_in(2):
            group["subgroups"] = [{"name": f"s{part}", "min_available": self._draw.randint(1, 2)} for part in (0, 1)]
            group["min_subgroups"] = self._draw.randint(1, 2)
            for number, task in enumerate(tasks):
                task["subgroup"] = f"s{number % 2}"
        return group

    def _of(self) -> str:
        return self._draw.choice("aab") if self._purpose == "preempt" else self._draw.choice("aacb")

    def _running(self, name: str) -> Document | None:
        node, sizes = self._draw.choice(self._nodes), [1, 1, 2, 3] if "shapes" in self.about else [1, 2]
        gpu = self._draw.choice(sizes)
        request: Document = {"cpu": self._draw.choice([1, 2]) if "cores" in self.about else 1}
        task: Document = {"name": name, "status": "Running", "node": node, "request": request}
        if "cards" in self.about and self._once_in(2):
            card, part = self._draw.randrange(2), self._draw.choice([3, 4, 8])
            if self._parts[node][card] < part:
                return None
            self._parts[node][card] -= part
            task |= {"card_request": str(part), "card": f"c{card}"}
        elif self._left[node] < gpu:
            return None
        else:
            self._left[node] -= gpu
            request["gpu"] = gpu
        if "repelled" in self.about and self._draw.random() < 0.4:
            task["labels"] = {"app": "x"}
        if "lasting" in self.about and self._once_in(6):
            task["preemptible"] = False
        if "lasting" in self.about and self._once_in(6):
            task["priority"] = 5
        return task

    def _job(self) -> list[Document]:
        """One podgroup that waits, or two that start together."""
        names = ["w0", "w1"] if "group" in self.about else ["w0"]
        asks = self._requests()
        said: Document = {"queue": "a" if self._purpose == "preempt" else "q", "priority": 5, "phase": "Inqueue"}
        if self.about & {"layers", "multiples"}:
            said["topology"] = self._layers()
        if "lasting" in self.about and self._once_in(4):
            said["preemptible"] = False
        if len(names) > 1:
            said["gang_group"] = [f"default/{name}" for name in names]
        return [self._waits(name, self._many(names), asks, said) for name in names]

    def _many(self, names: list[str]) -> int:
        choice = [1, 2] if len(names) > 1 else [2, 4] if "multiples" in self.about else [1, 2, 2, 3, 3, 4]
        return self._draw.choice(choice)

    def _requests(self) -> list[Document]:
        """What each task of a podgroup asks for."""
        cpu = self._draw.choice([1, 2]) if "cores" in self.about else 1
        if "cards" in self.about and self._once_in(2):
            part = self._draw.choice([3, 4, 5, 8])
            return [{"card_request": str(part), "request": {"cpu": cpu}}] * 4
        sizes = [self._draw.randint(1, 3)] * 4
        if "shapes" in self.about:
            sizes = [self._draw.randint(1, 3) for _ in sizes]
        return [{"request": {"cpu": cpu, "gpu": gpu}} for gpu in sizes]

    def _waits(self, name: str, many: int, asks: list[Document], said: Document) -> Document:
        tasks: list[Document] = [{"name": f"{name}-{at}", "index": at, **asks[at]} for at in range(many)]
        least = self._draw.randint(1, many) if "elastic" in self.about else many
        group: Document = {"name": name, "min_available": least, "tasks": tasks, **said}
        if "repelled" in self.about:
            self._repel(tasks)
        if "subgroups" in self.about and many > 1 and "group" not in self.about:
            self._divide(group)
        return group

    def _layers(self) -> Document:
        said: Document = self._draw.choice([
            {"required": "block"}, {"required": "spine"}, {"preferred": "block"}, {"preferred": "spine"},
            {"required": "spine", "preferred": "block"},
        ])  # fmt: skip
        if "multiples" in self.about:
            said = {**said, "multiples": {self._draw.choice(["block", "spine"]): 2}}
        return dict(said)

    def _repel(self, tasks: list[Document]) -> None:
        app = self._draw.choice("xxy")
        alike = self._once_in(2)
        for task in tasks:
            if alike or self._draw.random() < 0.7:
                app = app if alike else self._draw.choice("xxy")
                task["pod_anti_affinity"] = [{"topology_key": _HOST, "match_labels": {"app": app}}]
            task["labels"] = {"app": "y"}

    def _divide(self, group: Document) -> None:
        group["subgroups"] = [{"name": f"s{part}", "min_available": 1} for part in (0, 1)]
        group["min_subgroups"] = self._draw.randint(1, 2)
        if group["min_subgroups"] == 1:
            group["min_available"] = min(group["min_available"], len(group["tasks"]) // 2)
        for part in group["subgroups"]:
            if self._once_in(2):
                part["topology"] = {"required": "block"}
        for at, task in enumerate(group["tasks"]):
            task["subgroup"] = f"s{at % 2}"

    # -- quotas --------------------------------------------------------------------------------------------------------

    def _queues(self, groups: list[Document]) -> list[Document]:
        """In preempt one queue that may be full, in reclaim some that have lent and some that have borrowed."""
        if self._purpose == "preempt":
            held = sum(_held(task, "gpu") for one in groups if one["queue"] == "a" for task in one["tasks"])
            most = self._draw.randint(max(held - 3, 1), held + 1) if "tight" in self.about else 99
            return [{"name": "a", "deserved": {"gpu": most}, "capability": {"gpu": most}}, {"name": "b"}]
        names = "abc"
        queues = [{"name": name, **self._minimum(0, 3)} for name in names]
        queues.append({"name": "q", **self._minimum(*((2, 6) if "tight" in self.about else (6, 12)), most=30)})
        if "tree" in self.about:
            under = self._draw.choice([("a", "b"), ("a", "c"), ("c", "q"), ("a", "b", "c")])
            top = {"name": "top", **self._minimum(0, 8, most=30)}
            return [top, *(one | ({"parent": "top"} if one["name"] in under else {}) for one in queues)]
        return queues

    def _minimum(self, low: int, high: int, most: int = 3) -> Document:
        said: Document = {"deserved": {"gpu": self._draw.randint(low, high)}}
        if "cores" in self.about:
            said["deserved"]["cpu"] = self._draw.randint(low, most)
        if self._once_in(5):
            said["guarantee"] = {"gpu": self._draw.randint(0, 2)}
        if self._once_in(4):
            said["weight"] = self._draw.randint(0, 3)
        return said


def _held(task: Document, resource: str) -> int:
    return int(task["request"].get(resource, 0))
