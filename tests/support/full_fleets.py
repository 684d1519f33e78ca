"""Full nodes of eight devices, as cluster files: podgroups of several priorities run on them, others starve."""

import random
from collections.abc import Sequence
from typing import Any

from pipeline.policy import Purpose
from tests.support.small_clusters import REST, podgroup, world

GPU, NOW = "nvidia.com/gpu", 1_000_000.0
#: Profiles under which small podgroups are served at once, and what for.
WAYS = [(profile, purpose) for profile in ("default", "kai") for purpose in (Purpose.PREEMPT, Purpose.RECLAIM)]


def full(rng: random.Random, most: int, sizes: Sequence[int], purpose: Purpose) -> tuple[int, list[dict[str, Any]]]:
    """How many nodes, four to ``most``, and podgroups that hold all of them; in reclaim they are of three queues."""
    many = rng.randint(4, most)
    left, podgroups = {f"n{at}": 8 for at in range(many)}, list[dict[str, Any]]()
    while any(left.values()):
        size, places = rng.choice(sizes), list[str | None]()
        for _ in range(rng.randint(1, 4)):
            if fitting := [name for name in left if left[name] >= size]:
                places.append(rng.choice(fitting))
                left[str(places[-1])] -= size
        if places:
            minimum = rng.randint(1, len(places)) if rng.random() < 0.3 else len(places)
            said = {"priority": rng.randint(0, 2), "started": NOW - 3600 * rng.expovariate(1 / 4)}
            queue, name = rng.choice("acd") if purpose is Purpose.RECLAIM else "a", f"low{len(podgroups)}"
            said |= {"queue": queue, "phase": "Running", "min_available": minimum}
            podgroups.append(podgroup(name, [{GPU: size}] * len(places), places, **said))
    return many, podgroups


def starving(at: int, sizes: Sequence[int], minimum: int, purpose: Purpose) -> dict[str, Any]:
    """A podgroup that waits for all of its tasks; in reclaim its queue is another one."""
    queue = "b" if purpose is Purpose.RECLAIM else "a"
    said = {"queue": queue, "priority": 9, "phase": "Inqueue", "min_available": minimum}
    return podgroup(f"high{at:02}", [{GPU: size} for size in sizes], **said)


def full_fleet(nodes: int, podgroups: list[dict[str, Any]], profile: str, purpose: Purpose) -> dict[str, Any]:
    """The cluster file; in reclaim half of the devices is the share of the queue that starves."""
    whole = 8 * nodes
    reclaims = {"a": whole // 8, "c": whole // 8, "d": whole // 8, "b": whole // 2}
    shares = reclaims if purpose is Purpose.RECLAIM else {"a": whole}
    rest = REST if profile == "kai" else {}
    queues = {name: {"deserved": {GPU: share, **rest}} for name, share in shares.items()}
    has = {f"n{at}": {GPU: 8} for at in range(nodes)}
    return world(has, queues, podgroups, now=NOW, profile=profile, actions=[purpose.value])
