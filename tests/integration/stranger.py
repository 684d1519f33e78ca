"""A fleet connector written from docs/protocol.md alone, with a Redis client and msgpack and nothing of ours.

It is forgetful on purpose: it says everything twice, and now and then it dies between carrying a decision out and
acknowledging it.
"""

from __future__ import annotations

from typing import Any

import msgpack
import redis

GROUP = "stranger"


class Stranger:
    """Four nodes of eight devices in two racks, and what runs on them."""

    def __init__(self, url: str, fleet: str) -> None:
        self._redis = redis.Redis.from_url(url)
        self._events, self._decisions = (f"clearway:{{{fleet}}}:{stream}" for stream in ("events", "decisions"))
        self._entries, self._revision, self._lists = 0, 0, 0
        self.nodes = {f"n{at}": {"rack": f"r{at // 2}"} for at in range(4)}
        self.gangs: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.plans: set[str] = set()
        self.seen_twice = 0
        for at in range(4):
            self._add(f"low{at}", count=1, priority=1)
            self.tasks[f"default/low{at}-0"] |= {"status": "Running", "node": f"n{at}"}

    def _add(self, name: str, count: int, priority: int) -> None:
        self.gangs[f"default/{name}"] = {
            "name": name, "namespace": "default", "queue": "ml", "priority": priority, "min_available": count,
            "topology": {"required": "rack"},
        }  # fmt: skip
        for at in range(count):
            self.tasks[f"default/{name}-{at}"] = {
                "gang": f"default/{name}", "status": "Pending", "node": None, "incarnation": 0,
            }  # fmt: skip

    # -- what is said ------------------------------------------------------------------------------------------

    def _say(self, *envelopes: dict[str, Any], times: int = 2) -> None:
        for _ in range(times):
            self._entries += 1
            fields = {"batch": msgpack.packb(list(envelopes)), "sequence": str(self._entries)}
            self._redis.xadd(self._events, fields)

    def _envelope(self, kind: str, uid: str, body: dict[str, Any]) -> dict[str, Any]:
        self._revision += 1
        newer = {"a key of a later version": [1, 2]}  # passes unread
        return {
            "version": 1, "uid": uid, "kind": kind, "revision": self._revision, "body": {**body, **newer}, **newer,
        }  # fmt: skip

    def list_fleet(self) -> None:
        """Everything there is, in two parts."""
        self._lists += 1
        nodes = [
            {"name": name, "labels": labels, "allocatable": {"cpu": "64", "nvidia.com/gpu": 8, "pods": 110}}
            for name, labels in self.nodes.items()
        ]
        first = {
            "version": 1, "nodes": nodes, "queues": [{"name": "ml", "deserved": {"nvidia.com/gpu": 32}}],
            "topology": {"levels": ["rack"], "labels": {"rack": "rack"}},
        }  # fmt: skip
        second = {"version": 1, "podgroups": [self._described(gang) for gang in self.gangs]}
        self._revision += 1
        for part, cluster in enumerate((first, second)):
            body = {"list_id": f"list {self._lists}", "part": part, "parts": 2, "cluster": cluster}
            self._say(
                {"version": 1, "uid": "fleet", "kind": "fleet_listed", "revision": self._revision, "body": body},
                times=1,
            )

    def _described(self, gang: str) -> dict[str, Any]:
        tasks = []
        for name, task in self.tasks.items():
            if task["gang"] == gang:
                said = {
                    "name": name.split("/")[1],
                    "request": {"cpu": 1, "nvidia.com/gpu": 8},
                    "status": task["status"],
                }
                tasks.append(said | ({"node": task["node"]} if task["node"] else {}))
        return {**self.gangs[gang], "tasks": tasks}

    def submit(self, name: str, count: int, priority: int) -> None:
        """A gang arrives."""
        self._add(name, count, priority)
        self._say(self._envelope("podgroup_upserted", f"uid-{name}", self._described(f"default/{name}")))

    def nonsense(self) -> None:
        """What must be refused without harm to anything else."""
        alive = self._envelope("node_upserted", "uid-n9", {"name": "n9", "allocatable": {"cpu": "1", "pods": 1}})
        self._say({**alive, "version": 2}, {**alive, "kind": "weather_changed"}, "no map", alive, times=1)
        self.nodes["n9"] = {}
        self._redis.xadd(self._events, {"batch": b"\xc1"})
        self._redis.xadd(self._events, {"batch": msgpack.packb([{**alive, "body": {"name": "x" * (1 << 20)}}])})

    # -- what is obeyed ----------------------------------------------------------------------------------------

    def join(self) -> None:
        """Read decisions from the first there is."""
        try:
            self._redis.xgroup_create(self._decisions, GROUP, id="0", mkstream=True)
        except redis.ResponseError as known:
            if "BUSYGROUP" not in str(known):
                raise

    def turn(self, *, dies: bool = False) -> int:
        """Carry out what was left over, then what is new; one that dies does not acknowledge. How many there were."""
        entries = self._read("0") or self._read(">")
        for entry, fields in entries:
            for envelope in msgpack.unpackb(fields[b"batch"]):
                self._obey(envelope)
            if not dies:
                self._redis.xack(self._decisions, GROUP, entry)
        return len(entries)

    def _read(self, after: str) -> list[Any]:
        reply = self._redis.xreadgroup(GROUP, "one", {self._decisions: after}, count=10)
        streams = reply.values() if isinstance(reply, dict) else [batch for _, batch in reply]
        rows: list[Any] = []
        for found in streams:
            rows += found[0] if found and found[0] and isinstance(found[0][0], list) else found
        return [(row[0], row[1]) for row in rows]

    def _obey(self, envelope: dict[str, Any]) -> None:
        kind, made = envelope["kind"], envelope["body"]
        if kind == "resync_requested":
            self.list_fleet()
        if kind != "plan_committed":
            return
        if made["plan_id"] in self.plans:
            self.seen_twice += 1
            return
        self.plans.add(made["plan_id"])
        for one in made.get("evictions", ()):
            task = self.tasks[one["task"]]
            if task["incarnation"] == one["incarnation"] and task["status"] == "Running":
                said = {"task": one["task"], "incarnation": one["incarnation"]}
                self._say(self._envelope("task_terminating", f"uid-{one['task']}", said))
                self._say(
                    self._envelope("task_ended", f"uid-{one['task']}", {**said, "outcome": "Evicted", "replaced": True})
                )
                task |= {"status": "Pending", "node": None, "incarnation": one["incarnation"] + 1}
        for one in made.get("bindings", ()):
            task = self.tasks[one["task"]]
            if task["status"] == "Pending" and one.get("incarnation") in (None, task["incarnation"]):
                task |= {"status": "Running", "node": one["node"]}
                said = {"task": one["task"], "node": one["node"], "incarnation": task["incarnation"]}
                self._say(self._envelope("task_started", f"uid-{one['task']}", said))

    def running(self, name: str) -> list[str | None]:
        """Nodes of the running tasks of a gang."""
        mine = (task for task in self.tasks.values() if task["gang"] == f"default/{name}")
        return [task["node"] for task in mine if task["status"] == "Running"]
