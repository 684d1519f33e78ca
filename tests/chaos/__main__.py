"""``python -m tests.chaos --real``: seeded fault schedules against a real broker and real Ray."""

from __future__ import annotations

import argparse
import sys
import time

from actors.warm import warm_up
from tests.chaos.real_ray import raylets
from tests.chaos.real_runs import run
from tests.chaos.real_schedule import drawn


def main() -> int:
    """Play so many schedules; 1 if anything was broken in any."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--real", action="store_true", required=True, help="a real broker and real Ray")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow")
    asked = parser.parse_args()
    warm_up()
    began, failed = time.monotonic(), []
    with raylets() as cluster:
        for seed in range(asked.seed, asked.seed + asked.runs):
            schedule = drawn(seed)
            say(f"seed {seed}", *(f"  {fault}" for fault in schedule.faults))
            outcome = run(schedule, cluster)
            say(f"  {'BROKEN' if outcome.broken else 'ok'}: {outcome}", *(f"    {one}" for one in outcome.broken))
            if outcome.broken:
                failed.append(seed)
    say(f"{asked.runs} schedules in {time.monotonic() - began:.0f} s, {len(failed)} broken")
    say(*(f"again: make chaos RUNS=1 SEED={seed}" for seed in failed))
    return 1 if failed else 0


def say(*lines: str) -> None:
    """At once, so that a run that hangs shows where."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
