"""Property tests that are run over a range of seeds by hand, beyond those in ``make test``."""

import sys
from collections.abc import Callable


def compare(defect_of: Callable[[int], object], first: int, stop: int) -> int:
    """Look for a defect in each of some seeds, and print what is wrong; 1 if anything is."""
    wrong = 0
    for seed in range(first, stop):
        found = defect_of(seed)
        if found:
            wrong += 1
            sys.stdout.write(f"{seed} {found}\n")
    sys.stdout.write(f"{wrong} of {stop - first}\n")
    return int(wrong > 0)
