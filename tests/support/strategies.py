"""Small random cluster files: up to six nodes under two levels, two queues, a few podgroups that run or wait.

Drawn as documents, so that what fails can be read, and with everything that decides: roles, subgroups, gang groups,
priorities, quotas, budgets, what is protected and what may not evict.
"""

from typing import Any

from hypothesis import strategies as st

GPU = "nvidia.com/gpu"
LEVELS = ("block", "rack")


@st.composite
def documents(draw: st.DrawFn, *, profile: str = "default", running: bool = True) -> dict[str, Any]:
    """A cluster file of which, unless ``running`` is False, as much runs as finds room in the order drawn."""
    count = draw(st.integers(2, 6))
    nodes = [
        {
            "name": f"n{at}",
            "allocatable": {"cpu": 8, GPU: draw(st.integers(1, 3)), "pods": draw(st.sampled_from([3, 20, 20]))},
        }
        for at in range(count)
    ]
    room = [node["allocatable"][GPU] for node in nodes]
    pods = [node["allocatable"]["pods"] for node in nodes]
    podgroups = [draw(_podgroups(at)) for at in range(draw(st.integers(3, 5)))]
    podgroups[-1]["priority"] = draw(st.integers(1, 3))
    for at, podgroup in enumerate(podgroups):
        waits = not running or at == len(podgroups) - 1 or draw(st.integers(0, 5)) == 0
        first = draw(st.integers(0, count - 1))
        for task in podgroup["tasks"]:
            asked = task["request"].get(GPU, 0)
            open_to = [n for n in [*range(first, count), *range(first)] if room[n] >= asked and pods[n] > 0]
            if waits or not open_to:
                task["status"] = "Pending"
                continue
            first = open_to[0]
            room[first] -= asked
            pods[first] -= 1
            task |= {"status": "Running", "node": f"n{first}"}
    if len(podgroups) > 2 and draw(st.integers(0, 5)) == 0:
        together = [f"{podgroup['namespace']}/{podgroup['name']}" for podgroup in podgroups[-2:]]
        for podgroup in podgroups[-2:]:
            podgroup |= {"gang_group": together, "queue": podgroups[-1]["queue"]}
    return {
        "version": 1,
        "id": "drawn",
        "now": 10_000.0,
        "policy": {"profile": profile},
        "nodes": nodes,
        "topology": {"levels": list(LEVELS), "domains": _domains(count)},
        "queues": draw(_queues()),
        "podgroups": podgroups,
        "disruption_budgets": [
            {"name": "b", "match_labels": {"app": "x"}, "disruptions_allowed": allowed}
            for allowed in draw(st.lists(st.integers(0, 2), max_size=1))
        ],
    }


def _domains(count: int) -> list[dict[str, Any]]:
    """Blocks of two racks of two nodes; the last ones have what is left."""
    blocks = [{"name": f"b{at}", "level": "block"} for at in range((count + 3) // 4)]
    racks = [
        {
            "name": f"r{at}",
            "level": "rack",
            "parent": f"b{at // 2}",
            "nodes": [f"n{n}" for n in (2 * at, 2 * at + 1) if n < count],
        }
        for at in range((count + 1) // 2)
    ]
    return [*blocks, *racks]


@st.composite
def _queues(draw: st.DrawFn) -> list[dict[str, Any]]:
    queues = []
    for name in ("a", "b"):
        queue: dict[str, Any] = {"name": name}
        if draw(st.integers(0, 4)):
            queue["deserved"] = {GPU: draw(st.sampled_from([0, 1, 2, 4, 8, "unlimited"]))}
            if draw(st.booleans()):
                queue["deserved"]["cpu"] = draw(st.sampled_from([0, 2, 4, 12]))
        if draw(st.integers(0, 7)) == 0:
            queue["capability"] = {GPU: draw(st.integers(2, 10))}
        if draw(st.integers(0, 4)) == 0:
            queue["guarantee"] = {GPU: draw(st.integers(0, 2))}
        if draw(st.integers(0, 9)) == 0:
            queue["reclaimable"] = False
        queues.append(queue)
    if draw(st.integers(0, 3)) == 0:
        queues = [{"name": "org", "deserved": {GPU: 12}}, *({**queue, "parent": "org"} for queue in queues)]
    return queues


@st.composite
def _podgroups(draw: st.DrawFn, at: int) -> dict[str, Any]:
    tasks = draw(st.integers(1, 5))
    podgroup: dict[str, Any] = {
        "name": f"g{at}",
        "namespace": "kube-system" if draw(st.integers(0, 19)) == 0 else "default",
        "queue": draw(st.sampled_from(["a", "a", "b"])),
        "priority": draw(st.sampled_from([0, 0, 1, 2])),
        "min_available": draw(st.integers(1, tasks)),
        "created": float(draw(st.integers(0, 3))),
    }
    if draw(st.integers(0, 9)) == 0:
        podgroup["preemptible"] = False
    if draw(st.integers(0, 9)) == 0:
        podgroup["preemption_policy"] = "Never"
    if draw(st.integers(0, 2)) == 0:
        podgroup["topology"] = {
            draw(st.sampled_from(["required", "required", "preferred"])): draw(st.sampled_from(LEVELS))
        }
    if draw(st.integers(0, 3)) == 0:
        podgroup["last_checkpoint"] = float(draw(st.integers(0, 10))) * 1000.0
    kinds = draw(st.sampled_from(["plain", "plain", "roles", "subgroups"]))
    size = draw(st.sampled_from([1, 1, 2, 3]))
    members = [_task(draw, f"t{at}-{n}", size) for n in range(tasks)]
    if kinds == "roles" and tasks > 1:
        least = draw(st.integers(0, tasks - 1))
        podgroup["roles"] = {"driver": {"min": 1}, "worker": {"min": least}}
        for n, task in enumerate(members):
            task["role"] = "worker" if n else "driver"
    if kinds == "subgroups" and tasks > 1:
        podgroup["subgroups"] = [{"name": f"s{n}", "min_available": draw(st.integers(1, 2))} for n in range(2)]
        for n, task in enumerate(members):
            task["subgroup"] = f"s{n % 2}"
        for subgroup in podgroup["subgroups"]:
            if draw(st.integers(0, 2)) == 0:
                subgroup["topology"] = {"required": "rack"}
        podgroup["min_subgroups"] = draw(st.integers(1, 2))
    return {**podgroup, "tasks": members}


def _task(draw: st.DrawFn, name: str, size: int) -> dict[str, Any]:
    task: dict[str, Any] = {"name": name, "request": {GPU: size, "cpu": 1}}
    unusual = draw(st.integers(0, 19))
    if unusual == 0:
        task["request"] = {}
    elif unusual == 1:
        task["request"] = {GPU: 1, "cpu": 2}
    elif unusual == 2:
        task["preemptible"] = False
    elif unusual == 3:
        task["gone_when_evicted"] = True
    elif unusual in (4, 5, 6):
        task["labels"] = {"app": "x"}
    return task
