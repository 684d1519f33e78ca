"""What `pip install .` puts into an empty environment is enough to run outside the checkout."""

from __future__ import annotations

import subprocess
import sys
import venv
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where this interpreter finds what the program depends on: nothing is fetched for the test.
LIBRARIES = str(Path(sys.modules["pytest"].__file__ or "").parents[1])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the program from a copy of the sources, without its dependencies."""
    folder = tmp_path_factory.mktemp("newcomer")
    wheels = folder / "wheels"
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "."], cwd=ROOT, check=True)
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", *wheels.glob("*.whl")], check=True)
    return folder / "environment"


def said(installed: Path, *words: str) -> str:
    done = subprocess.run(
        [installed / "bin" / words[0], *words[1:]], cwd="/", env={"PYTHONPATH": LIBRARIES, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_the_program_says_its_version_and_finds_its_profiles(installed: Path) -> None:
    assert said(installed, "clearway", "--version").startswith("clearway ")
    where = said(installed, "python", "-c", "from actors.documents.shipped import CONFIG; print(CONFIG)").strip()
    assert Path(where).is_relative_to(installed)
    for file in (ROOT / "config").rglob("*.*"):
        assert (Path(where) / file.relative_to(ROOT / "config")).read_bytes() == file.read_bytes()


def test_the_metadata_has_the_readme(installed: Path) -> None:
    (metadata,) = installed.rglob("clearway-*.dist-info/METADATA")
    assert (ROOT / "README.md").read_text().splitlines()[0] in message_from_string(metadata.read_text()).get_payload()
