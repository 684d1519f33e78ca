"""The list of faults can be read: each has a file and tests that are there, and changes one place."""

from __future__ import annotations

import ast

from tests.mutants.faults import listed
from tests.mutants.run import ROOT


def test_each_fault_names_a_file_and_tests_that_are_there() -> None:
    mutants = listed()
    assert len({one.about for one in mutants}) == len(mutants) > 60
    for mutant in mutants:
        assert mutant.old != mutant.new
        ast.parse(mutant.applied((ROOT / mutant.file).read_text()))
        assert mutant.tests
        for file, _, test in (one.partition("::") for one in mutant.tests):
            assert f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), mutant.about
