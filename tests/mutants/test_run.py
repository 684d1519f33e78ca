"""A fault that a test sees is noticed, one that none sees survives, and the copy is as it was afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.run import Mutant, played

SOURCE = "def most(a: int, b: int) -> int:\n    return max(a, b)\n"
TESTS = """from product import most

def test_equal() -> None:
    assert most(3, 3) == 3

def test_other() -> None:
    assert most(1, 2) == 2
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "product.py").write_text(SOURCE)
    (tmp_path / "test_product.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


@pytest.mark.parametrize(
    ("test", "noticed_by", "survives"),
    [
        ("test_product.py::test_other", "test_product.py::test_other", None),
        ("test_product.py::test_equal", "", "the least is taken: test_product.py::test_equal pass"),
    ],
    ids=["noticed", "survives"],
)
def test_a_fault_is_noticed_by_the_test_that_fails(
    copy: Path, test: str, noticed_by: str, survives: str | None
) -> None:
    found = played(Mutant("the least is taken", "product.py", "max(", "min(", (test,)), copy)
    assert (found.noticed_by, found.survives) == (noticed_by, survives)
    assert (copy / "product.py").read_text() == SOURCE


def test_a_fault_whose_lines_are_not_there_or_whose_test_is_gone_counts_as_not_noticed(copy: Path) -> None:
    gone = played(Mutant("older", "product.py", "sum(", "min(", ("test_product.py",)), copy)
    assert gone.survives == "older: product.py: expected its lines once, found them 0 times"
    renamed = played(Mutant("renamed", "product.py", "max(", "min(", ("test_product.py::test_gone",)), copy)
    assert str(renamed.survives).startswith("renamed: pytest ended with 4")
