"""Small random clusters with all that decides at once: elastic gangs, promises, stale gangs, quotas and budgets.

Drawn with `random`, so that a seed is all that a test has to keep. Tasks that end already are gone then: else they
would begin to wait later, as work that comes from outside.
"""

import random
from typing import Any

from tests.support.small_clusters import REST, Document, world

NOW = 1_700_000_000.0
#: The actions of `default` with all others that move or end tasks.
_ALL_ACTIONS = ["enqueue", "allocate", "backfill", "consolidation", "reclaim", "preempt", "stalegangeviction"]
_HOSTNAME = "kubernetes.io/hostname"


class WholeClusters:
    """Draws one cluster for a profile; victims start over, or are gone."""

    def __init__(self, seed: int, profile: str, *, again: bool) -> None:
        self.draw = random.Random(f"{profile}-{seed}")
        self.profile, self.again = profile, again
        self.nodes = {f"n{at}": self._node() for at in range(self.draw.randint(1, 6))}
        self.left = {name: dict(has) for name, has in self.nodes.items()}
        self.layered, self.elastic = self._once_in(2), self._once_in(2)
        self.queues = "abc"[: self.draw.choice([1, 2, 2, 3])]

    def document(self) -> Document:
        """The cluster file."""
        promising = self._once_in(3)
        groups = [one for at in range(3 + 2 * len(self.nodes)) for one in self._placed(at, promising=promising)]
        groups += [self._gang(f"new{at}", [1, 2, 3, 5, 9]) for at in range(self.draw.randint(1, 4))]
        if self._once_in(8):
            for one in groups[-2:]:
                one["gang_group"] = [f"default/{other['name']}" for other in groups[-2:]]
        policy: Document = {"profile": self.profile}
        if self.profile == "default" and self._once_in(2):
            policy["actions"] = _ALL_ACTIONS
        document = world(self.nodes, self._queues(), groups, now=NOW, **policy)
        document["disruption_budgets"] = [{"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": 1}]
        return document | ({"topology": self._topology()} if self.layered else {})

    def _once_in(self, many: int) -> bool:
        return self.draw.randrange(many) == 0

    def _node(self) -> Document:
        return {"cpu": 64, "memory": "256Gi", "gpu": self.draw.choice([2, 4, 4, 8]), "pods": self.draw.choice([4, 20])}

    def _topology(self) -> Document:
        """Racks of two nodes in blocks of two racks."""
        names = list(self.nodes)
        racks = [names[at : at + 2] for at in range(0, len(names), 2)]
        blocks = [{"name": f"b{at}", "level": "block"} for at in range((len(racks) + 1) // 2)]
        levels = [
            {"name": f"r{at}", "level": "rack", "parent": f"b{at // 2}", "nodes": nodes}
            for at, nodes in enumerate(racks)
        ]
        return {"levels": ["block", "rack"], "domains": [*blocks, *levels]}

    def _queues(self) -> Document:
        """What each queue deserves; together all there is, or more."""
        whole, rest = sum(has["gpu"] for has in self.nodes.values()), REST if self.profile == "kai" else {}
        cuts = [0, *sorted(self.draw.randint(0, whole) for _ in self.queues[1:]), whole]
        queues: Document = {}
        for at, name in enumerate(self.queues):
            share = cuts[at + 1] - cuts[at]
            queues[name] = {"deserved": {"gpu": share, **rest}}
            if self._once_in(7):
                queues[name]["capability"] = {"gpu": self.draw.randint(max(1, share), whole + 2), **rest}
            if self._once_in(7):
                queues[name]["guarantee"] = {"gpu": self.draw.randint(0, share)}
            if self._once_in(12):
                queues[name]["reclaimable"] = False
        if self.profile == "kai" or self._once_in(3):
            children = {name: {**said, "parent": "root"} for name, said in queues.items()}
            return {"root": {"deserved": {"gpu": whole, **rest}}, **children}
        return queues

    def _gang(self, name: str, priorities: list[int]) -> Document:
        """A podgroup that waits."""
        many, size = self.draw.choice([1, 1, 2, 2, 3, 4]), self.draw.choice([1, 1, 2, 2, 3, 4])
        tasks: list[Document] = [{"name": f"{name}-{at}", "request": {"gpu": size, "cpu": 1}} for at in range(many)]
        least = self.draw.randint(1, many) if self.elastic and self._once_in(2) else many
        group: dict[str, Any] = {
            "name": name, "queue": self.draw.choice(self.queues), "priority": self.draw.choice(priorities),
            "min_available": least, "created": float(self.draw.randint(0, 9)), "tasks": tasks,
        }  # fmt: skip
        if self._once_in(15):
            group["preemptible"] = False
        if self._once_in(20):
            group["preemption_policy"] = "Never"
        if self.layered and self._once_in(3):
            group["topology"] = {self.draw.choice(["required", "preferred"]): self.draw.choice(["block", "rack"])}
        if many > 1 and self._once_in(7):
            group["subgroups"] = [{"name": f"s{at}", "min_available": 1} for at in range(2)]
        for at, task in enumerate(tasks):
            task.update({} if self.again else {"gone_when_evicted": True})
            task.update({"subgroup": f"s{at % 2}"} if "subgroups" in group else {})
        if self._once_in(8):
            repelled = [{"topology_key": _HOSTNAME, "match_labels": {"app": self.draw.choice([name, "x"])}}]
            for task in tasks:
                task.update({"labels": {"app": name}, "pod_anti_affinity": repelled})
        elif self._once_in(10):
            for task in tasks:
                task["labels"] = {"app": "x"}
        return group

    def _placed(self, at: int, *, promising: bool) -> list[Document]:
        """A podgroup that runs, ends, or was promised nodes, perhaps beside what holds them yet; none without room."""
        state = self.draw.choice(["runs", "runs", "ends", "promised"]) if promising else "runs"
        group = self._gang(f"{state}{at}", [1, 1, 2, 3])
        places = self._places(group)
        if places is None:
            return []
        for task, node in zip(group["tasks"], places, strict=True):
            task.update({"nominated_node": node} if state == "promised" else {"status": "Running", "node": node})
        if state == "promised":
            return [group, self._before(group)] if self._once_in(2) else [group]
        if state == "ends":
            for task in group["tasks"]:
                task.update({"status": "Terminating", "gone_when_evicted": True})
            return [group]
        group |= {"started": NOW - self.draw.choice([100, 10_000]), "phase": "Running"}
        if len(group["tasks"]) > 1 and self._once_in(10):
            for key in ("status", "node"):
                group["tasks"][-1].pop(key)
            group["stale_since"] = NOW - self.draw.choice([10, 1000])
        return [group]

    def _before(self, group: Document) -> Document:
        """What ends where a podgroup was promised nodes."""
        ending = [
            {
                "name": f"before-{task['name']}", "request": task["request"], "gone_when_evicted": True,
                "status": "Terminating", "node": task["nominated_node"],
            }
            for task in group["tasks"]
        ]  # fmt: skip
        return {"name": f"before-{group['name']}", "queue": group["queue"], "priority": 1, "tasks": ending}

    def _places(self, group: Document) -> list[str] | None:
        """Nodes for all tasks of a podgroup in the room that is left, which they take; None if there are none."""
        then, places = {name: dict(has) for name, has in self.left.items()}, list[str]()
        near = list(self.nodes)
        if "required" in group.get("topology", {}):
            at = self.draw.randrange(0, len(near), 2)
            near = near[at : at + 2]
        for task in group["tasks"]:
            apart = places if "pod_anti_affinity" in task else []
            gpus = task["request"]["gpu"]
            fitting = [name for name in near if then[name]["gpu"] >= gpus and then[name]["pods"] and name not in apart]
            if not fitting:
                return None
            places.append(self.draw.choice(fitting))
            then[places[-1]] |= {"gpu": then[places[-1]]["gpu"] - gpus, "pods": then[places[-1]]["pods"] - 1}
        self.left = then
        return places
