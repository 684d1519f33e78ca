"""Small, fully stated situations and what must come of them.

``own.jsonl`` are ours. ``kai.jsonl`` and ``volcano.jsonl`` restate entries of test files of KAI Scheduler and Volcano,
which ``source`` names; where it names a section of the notes on KAI Scheduler, the case follows from those.
``koordinator.jsonl`` says what "Job Scheduling and Network Topology" and our profile promise, where the cases of
Koordinator's own tests do not. Beside a checkout that has a folder of other schedulers' cases, files that all pass are
run too.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.comparing import compared
from tests.conformance.report import judge_of
from tests.support.simulating import simulate

HERE = Path(__file__).parent
OTHERS = HERE.parents[2] / "shared" / "conformance"
#: Files here.
RESTATED = ("own", "kai", "volcano", "koordinator")
#: Files there.
PASSED = ("volcano", "koordinator")
Checks = Callable[[Mapping[str, Any], Mapping[str, Any]], None]


def lines(file: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, file.read_text(encoding="utf-8").splitlines())


def everything() -> Iterator[tuple[Mapping[str, Any], Checks]]:
    """The cases here with our own comparison; the others', where they are, with theirs."""
    yield from ((case, compared) for name in RESTATED for case in lines(HERE / f"{name}.jsonl"))
    for file in (OTHERS / f"{name}.jsonl" for name in PASSED):
        if (OTHERS / "check.py").exists() and file.exists():
            judge = judge_of(OTHERS)
            yield from ((case, judge.check) for case in lines(file))


CASES = list(everything())


@pytest.mark.parametrize(("case", "check"), CASES, ids=[case["id"] for case, _ in CASES])
def test_a_case_comes_out_as_it_expects(case: Mapping[str, Any], check: Checks) -> None:
    check(case, json.loads(json.dumps(simulate(case))))


def test_there_are_cases_of_our_own() -> None:
    names = [case["id"] for case, _ in CASES if case["id"].startswith("own/")]
    assert len(names) == len(set(names)) >= 8
