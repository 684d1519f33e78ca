"""``tests/unit`` mirrors the folders of the sources; a test file with the name of a source file is beside it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "tests" / "unit"
PACKAGES = ("pipeline", "actors")
TESTS = sorted(path.relative_to(UNIT) for package in PACKAGES for path in (UNIT / package).rglob("test_*.py"))
#: By name of a source file: the folders that have one.
FOLDERS: dict[str, set[Path]] = {}
for package in PACKAGES:
    for path in (ROOT / package).rglob("*.py"):
        FOLDERS.setdefault(path.stem, set()).add(path.relative_to(ROOT).parent)


@pytest.mark.parametrize("test", TESTS, ids=str)
def test_a_test_is_in_the_folder_of_what_it_tests(test: Path) -> None:
    assert (ROOT / test.parent / "__init__.py").exists(), f"{test}: there is no folder {test.parent} of sources"
    named_alike = FOLDERS.get(test.stem.removeprefix("test_"), {test.parent})
    assert test.parent in named_alike, f"{test}: the file of this name is in {', '.join(map(str, sorted(named_alike)))}"
