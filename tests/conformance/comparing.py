"""What came of a case, against what it expects: the keys that the cases here use."""

from collections.abc import Callable, Mapping
from typing import Any


def compared(case: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Everything that the case expects, key by key; a key that nobody compares is a mistake of the case."""
    expect = dict(case["expect"])
    first, stable = expect.pop("cycles", 1), expect.pop("stable_cycles", 0)
    assert bool(result["error"]) is expect.pop("error", False), result["error"]
    if result["error"]:
        assert result["cycles"] == []
        return
    assert len(result["cycles"]) == first + stable
    assert not any(cycle["evictions"] or cycle["bindings"] for cycle in result["cycles"][first:])
    for key, wanted in expect.items():
        assert (key, COMPARED[key](case, result, first, wanted)) == (key, wanted)


def evicted(result: Mapping[str, Any], first: int) -> list[str]:
    return sorted(entry["task"] for cycle in result["cycles"][:first] for entry in cycle["evictions"])


def bindings(result: Mapping[str, Any], first: int) -> dict[str, str]:
    return {entry["task"]: entry["node"] for cycle in result["cycles"][:first] for entry in cycle["bindings"]}


def nominations(result: Mapping[str, Any]) -> dict[str, str]:
    return {entry["task"]: entry["node"] for entry in result["cycles"][-1]["nominations"]}


def tasks_of(case: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {f"{group.get('namespace', 'default')}/{group['name']}": group["tasks"] for group in case["podgroups"]}


def placed(case: Mapping[str, Any], result: Mapping[str, Any], podgroup: str) -> int:
    """How many of its tasks hold a node or a nomination at the end."""
    namespace = podgroup.partition("/")[0]
    told = [result["final"].get(f"{namespace}/{task['name']}", {}) for task in tasks_of(case)[podgroup]]
    return sum(bool(task.get("node") or task.get("nominated_node")) for task in told)


def survivors(case: Mapping[str, Any], result: Mapping[str, Any], first: int, key: str) -> list[dict[str, Any]]:
    """The tasks of a podgroup, or of ``podgroup#role``, that ran at first and were never evicted."""
    podgroup, _, role = key.partition("#")
    gone, namespace = set(evicted(result, first)), podgroup.partition("/")[0]
    return [
        task
        for task in tasks_of(case)[podgroup]
        if task.get("status") in ("Running", "Bound") and f"{namespace}/{task['name']}" not in gone
        if not role or task.get("role") == role
    ]


def whole_leaves(case: Mapping[str, Any], result: Mapping[str, Any], first: int, podgroup: str) -> int:
    """How many subgroups without children kept their minimum."""
    left = [task["subgroup"] for task in survivors(case, result, first, podgroup)]
    open_ones = [s for g in case["podgroups"] if g["name"] == podgroup.partition("/")[2] for s in g["subgroups"]]
    found = 0
    while open_ones:
        one = open_ones.pop()
        open_ones += one.get("children", ())
        found += "children" not in one and left.count(one["name"]) >= one["min_available"]
    return found


def only_level(case: Mapping[str, Any], result: Mapping[str, Any], podgroup: str, level: str) -> str | None:
    """The level, if one of its domains has all tasks of the podgroup that hold a node or a nomination."""
    namespace, domains = podgroup.partition("/")[0], case["topology"]["domains"]
    above = {one["name"]: one.get("parent") for one in domains}
    widths = {one["name"]: one["level"] for one in domains}
    found = set()
    for task in tasks_of(case)[podgroup]:
        told = result["final"].get(f"{namespace}/{task['name']}", {})
        node = told.get("node") or told.get("nominated_node")
        if node:
            domain = next((one["name"] for one in domains if node in one.get("nodes", ())), None)
            while domain is not None and widths[domain] != level:
                domain = above[domain]
            found.add(domain)
    return level if len(found) < 2 and None not in found else None


def broken(case: Mapping[str, Any], result: Mapping[str, Any], first: int) -> int:
    """How many podgroups had their minimum running, and lost it to evictions."""
    gone, found = set(evicted(result, first)), 0
    for group in case["podgroups"]:
        names = [f"{group.get('namespace', 'default')}/{task['name']}" for task in group["tasks"] if task.get("node")]
        left = [name for name in names if name not in gone]
        found += len(names) >= group["min_available"] > len(left)
    return found


def status(result: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is asked of the tasks listed, status and node; a node of None is not compared."""
    final = result["final"]
    return {
        name: {key: None if asked is None else final[name][key] for key, asked in said.items()}
        for name, said in wanted.items()
    }


def where_asked(found: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """Tasks with their nodes; None where any node will do."""
    return {task: None if wanted.get(task, node) is None else node for task, node in found.items()}


COMPARED: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], int, Any], Any]] = {
    "evicted": lambda _, result, first, __: evicted(result, first),
    "evicted_count": lambda _, result, first, __: len(evicted(result, first)),
    "bound": lambda _, result, first, wanted: where_asked(bindings(result, first), wanted),
    "bound_count": lambda _, result, first, __: len(bindings(result, first)),
    "nominated": lambda _, result, __, wanted: where_asked(nominations(result), wanted),
    "nothing_touched": lambda _, result, first, __: (
        not (evicted(result, first) or bindings(result, first) or nominations(result))
    ),
    "task_status": lambda _, result, __, wanted: status(result, wanted),
    "podgroup_phase": lambda _, result, __, wanted: {name: result["phases"][name] for name in wanted},
    "podgroup_placed": lambda case, result, _, wanted: {name: placed(case, result, name) for name in wanted},
    "fair_share": lambda _, result, __, wanted: {
        queue: {resource: result["fair_share"][queue][resource] for resource in said} for queue, said in wanted.items()
    },
    "podgroup_survivors_min": lambda case, result, first, wanted: {
        name: min(least, len(survivors(case, result, first, name))) for name, least in wanted.items()
    },
    "subgroups_whole_min": lambda case, result, first, wanted: {
        name: min(least, whole_leaves(case, result, first, name)) for name, least in wanted.items()
    },
    "one_domain": lambda case, result, _, wanted: {
        name: only_level(case, result, name, level) for name, level in wanted.items()
    },
    "podgroups_broken": lambda case, result, first, _: broken(case, result, first),
}
