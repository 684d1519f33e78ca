"""Run conformance cases through ``simulate`` and write down what passed: ``make conformance``.

The cases and their judge (``check.py``) lie in a folder of their own beside the checkout; nothing else needs them.
"""

import argparse
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.results import put_results
from tests.support.simulating import simulate

PASSED, FAILED, NOT_SUPPORTED = "passed", "failed", "not supported"


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    case: str
    verdict: str
    why: str = ""

    @property
    def group(self) -> str:
        """Second part of the id."""
        return self.case.split("/")[1] if "/" in self.case else self.case


def judge_of(cases: Path) -> ModuleType:
    """The module that compares results with expectations."""
    spec = importlib.util.spec_from_file_location("conformance_check", cases / "check.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{cases}: expected check.py beside the cases")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_file(file: Path, judge: ModuleType) -> Iterator[Outcome]:
    """Every case of one file."""
    for line in file.read_text(encoding="utf-8").splitlines():
        case: Mapping[str, Any] = json.loads(line)
        result = simulate(case)
        try:
            judge.check(case, json.loads(json.dumps(result)))
        except judge.Difference as difference:
            unsupported = "not supported yet" in str(result.get("error") or "")
            yield Outcome(case["id"], NOT_SUPPORTED if unsupported else FAILED, str(difference))
        else:
            yield Outcome(case["id"], PASSED)


def table(results: Mapping[str, list[Outcome]]) -> str:
    """The results as Markdown: a row a file and group."""
    lines = ["| file | group | passed | failed | not supported |", "| --- | --- | --- | --- | --- |"]
    for file, outcomes in results.items():
        for group in [None, *sorted({outcome.group for outcome in outcomes})]:
            count = Counter(o.verdict for o in outcomes if group is None or o.group == group)
            name = f"**{file}**" if group is None else ""
            label = "all" if group is None else group
            lines.append(f"| {name} | {label} | {count[PASSED]} | {count[FAILED]} | {count[NOT_SUPPORTED]} |")
    return "\n".join(lines)


def main() -> int:
    """Run all files of a folder, print the failures, write the table between the marks of the output page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", help="part of a file's name")
    chosen = parser.parse_args()
    judge = judge_of(chosen.cases)
    files = [file for file in sorted(chosen.cases.glob("*.jsonl")) if (chosen.only or "") in file.name]
    results = {file.name: list(run_file(file, judge)) for file in files}
    for outcomes in results.values():
        for outcome in outcomes:
            if outcome.verdict == FAILED:
                sys.stdout.write(f"{outcome.case}: {outcome.why}\n")
    sys.stdout.write(table(results) + "\n")
    if chosen.output is not None:
        put_results(chosen.output, f"{table(results)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
