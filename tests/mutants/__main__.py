"""``python -m tests.mutants``: names the faults that no test notices."""

from __future__ import annotations

import argparse
import sys
import time

from tests.mutants.faults import listed
from tests.mutants.run import survivors


def main() -> int:
    """Play all mutants, or those that are named; 1 if one survives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="those whose description or file contains this")
    asked = parser.parse_args()
    chosen = [one for one in listed() if asked.only in one.about or asked.only in one.file]
    began = time.monotonic()
    found = survivors(chosen, asked.workers)
    sys.stdout.write("".join(f"{one}\n" for one in found))
    sys.stdout.write(f"{len(chosen)} mutants in {time.monotonic() - began:.0f} s, {len(found)} survive\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
