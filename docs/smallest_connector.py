"""The smallest connector: two nodes that list themselves, obey, and say what they did. Arguments: broker, fleet."""

import sys
import time
import uuid
from contextlib import suppress

import msgpack
import redis

broker = redis.Redis.from_url(sys.argv[1], protocol=2)
EVENTS, DECISIONS, GROUP = f"clearway:{{{sys.argv[2]}}}:events", f"clearway:{{{sys.argv[2]}}}:decisions", "smallest"
tasks = {f"default/job-{at}": {"node": "n0" if at in (0, 1) else None, "incarnation": 0} for at in range(4)}
seen: set[str] = set()
WRITER = uuid.uuid4().hex  # tells a second copy of this program from the first


def say(kind: str, uid: str, body: dict) -> None:
    envelope = {"version": 1, "uid": uid, "kind": kind, "revision": time.time_ns(), "body": body}
    broker.xadd(EVENTS, {"batch": msgpack.packb([envelope]), "writer": WRITER})


def list_fleet() -> None:
    nodes = [{"name": name, "allocatable": {"cpu": "8", "pods": 10}} for name in ("n0", "n1")]
    told = []
    for name, task in tasks.items():
        held = {"status": "Running", "node": task["node"]} if task["node"] else {"status": "Pending"}
        told.append({"name": name.split("/")[1], "request": {"cpu": 4}, "incarnation": task["incarnation"], **held})
    gang = {"name": "job", "namespace": "default", "queue": "main", "min_available": 2, "tasks": told}
    cluster = {"version": 1, "nodes": nodes, "queues": [{"name": "main"}], "podgroups": [gang]}
    say("fleet_listed", "fleet", {"list_id": str(time.time_ns()), "part": 0, "parts": 1, "cluster": cluster})


def obey(kind: str, body: dict) -> None:
    if kind == "resync_requested":
        list_fleet()
    if kind != "plan_committed" or body["plan_id"] in seen:
        return
    seen.add(body["plan_id"])
    for one in body["evictions"]:
        name, life, task = one["task"], one["incarnation"], tasks[one["task"]]
        if task["node"] and task["incarnation"] == life:
            task.update(node=None, incarnation=life + 1)
            say("task_ended", name, {"task": name, "outcome": "Evicted", "incarnation": life, "replaced": True})
    for one in body["bindings"]:
        name, task = one["task"], tasks[one["task"]]
        if not task["node"] and one.get("incarnation") in (None, task["incarnation"]):
            task["node"] = one["node"]
            say("task_started", name, {"task": name, "node": one["node"], "incarnation": task["incarnation"]})


def turn() -> None:
    for after in ("0", ">"):  # what was left over first
        for _, entries in broker.xreadgroup(GROUP, "one", {DECISIONS: after}, count=10, block=100) or ():
            for entry, fields in entries:
                for envelope in msgpack.unpackb(fields[b"batch"]):
                    obey(envelope["kind"], envelope["body"])
                broker.xack(DECISIONS, GROUP, entry)


if __name__ == "__main__":
    with suppress(redis.ResponseError):  # the group is there from an earlier start
        broker.xgroup_create(DECISIONS, GROUP, id="0", mkstream=True)
    list_fleet()
    while True:
        turn()
