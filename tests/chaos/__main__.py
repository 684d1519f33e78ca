"""``python -m tests.chaos``: seeded fault schedules, in memory or against a real broker and real Ray."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.chaos.schedule import FAULTS, TURNS


def main() -> int:
    """Play so many schedules; 1 if anything was broken in any."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--memory", action="store_true", help="everything in one thread, on a clock that is moved")
    where.add_argument("--walk", type=int, help="every interleaving in the small, with up to so many faults, 1 or more")
    where.add_argument("--real", action="store_true", help="a real broker and real Ray")
    parser.add_argument("--runs", type=int, help="200 in memory, else 30")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow")
    parser.add_argument("--turns", type=int, default=TURNS, help="in memory: of each schedule")
    parser.add_argument("--faults", type=int, default=FAULTS, help="in memory: of each schedule, at most")
    parser.add_argument("--profile", default="default", choices=("default", "kai", "koordinator"))
    parser.add_argument("--restored", action="store_true", help="in memory: the broker becomes an older copy of itself")
    parser.add_argument("--counts", action="store_true", help="in memory: what was done, and which faults struck where")
    asked = parser.parse_args()
    if asked.walk is not None and asked.walk < 1:
        parser.error(f"--walk: expected 1 or more, found {asked.walk}")
    if asked.walk is not None:
        return walked(asked.walk)
    if asked.memory:
        return in_memory(asked)
    return for_real(asked.seed, asked.runs if asked.runs is not None else 30, asked.profile)


def walked(faults: int) -> int:
    """How many states there are with so many faults, and with a lease that runs out instead of one of them.

    Told with the way to the first that is broken.
    """
    from tests.chaos.every_interleaving import Walk

    broken = 0
    for struck, expiries in ((faults, 0), (faults - 1, 1)):
        began = time.monotonic()
        walk = Walk(faults=struck, expiries=expiries).run()
        meanwhile = f"{struck} faults" + (", a lease runs out" if expiries else "")
        took = f"{walk.states} states in {time.monotonic() - began:.0f} s"
        say(*walk.broken, f"{meanwhile}: {took}, {len(walk.broken)} broken")
        broken += len(walk.broken)
    return 1 if broken else 0


def in_memory(asked: argparse.Namespace) -> int:
    """What is broken is told with its schedule."""
    from tests.chaos.memory_checks import run
    from tests.chaos.memory_world import KAI, KOORDINATOR, Parts

    parts = {"default": Parts(), "kai": Parts(policy=KAI), "koordinator": Parts(policy=KOORDINATOR)}[asked.profile]
    runs = asked.runs if asked.runs is not None else 200
    failed, done, began = [], Counter[str](), time.monotonic()
    for seed in range(asked.seed, asked.seed + runs):
        try:
            outcome = run(seed, parts, turns=asked.turns, most=asked.faults, restored=asked.restored)
        except Exception as failure:  # noqa: BLE001 - it is told, and the other schedules are played
            failed.append(seed)
            say(f"seed {seed}", *traceback.format_exception(failure))
            continue
        done.update(outcome.counts)
        if outcome.broken:
            failed.append(seed)
            say(str(outcome))
    if asked.counts:
        say(*(f"{count:6} {what}" for what, count in sorted(done.items())))
    say(f"{runs} schedules in {time.monotonic() - began:.0f} s, {len(failed)} broken")
    again = f"make chaos MEMORY=1 RUNS=1 TURNS={asked.turns} FAULTS={asked.faults}"
    say(*(f"again: {again} SEED={seed}" for seed in failed))
    return 1 if failed else 0


def for_real(first: int, runs: int, profile: str) -> int:
    """Each schedule is told before it is played."""
    from actors.configuration.profiles import load_profile
    from actors.warming.warm import warm_up
    from tests.chaos.real_ray import raylets
    from tests.chaos.real_runs import run
    from tests.chaos.real_schedule import drawn

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing is left running
    policy = load_profile(profile)
    warm_up(policy)
    began, failed = time.monotonic(), []
    with raylets() as cluster:
        for seed in range(first, first + runs):
            schedule = drawn(seed)
            say(f"seed {seed}", *(f"  {fault}" for fault in schedule.faults))
            outcome = run(schedule, cluster, policy)
            say(f"  {'BROKEN' if outcome.broken else 'ok'}: {outcome}", *(f"    {one}" for one in outcome.broken))
            if outcome.broken:
                failed.append(seed)
                kept = Path(tempfile.gettempdir()) / f"clearway-chaos-{seed}.txt"
                kept.write_text("\n".join(outcome.history), encoding="utf-8")
                say(f"    its history: {kept}")
    say(f"{runs} schedules in {time.monotonic() - began:.0f} s, {len(failed)} broken")
    say(*(f"again: make chaos RUNS=1 SEED={seed}" for seed in failed))
    return 1 if failed else 0


def say(*lines: str) -> None:
    """At once, so that a run that hangs shows where."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
