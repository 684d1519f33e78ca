"""What the wheel puts into an environment of its own is enough to run outside the checkout, whoever installs it.

The libraries that the program depends on are those of this interpreter, so that nothing is fetched: each environment
gets a package that adds their folder to its path. The program itself is built and installed as users do it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
#: Where this interpreter finds what the program depends on.
LIBRARIES = str(Path(sys.modules["pytest"].__file__ or "").parents[1])
PLAIN = {"PATH": "/usr/bin:/bin", "NUMBA_DISABLE_JIT": "1"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of the program, and with one that lends the libraries of this interpreter."""
    folder = tmp_path_factory.mktemp("wheels")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "."], cwd=ROOT, check=True)
    with zipfile.ZipFile(folder / "lent-1-py3-none-any.whl", "w") as lent:
        lent.writestr("lent.pth", f"{LIBRARIES}\n")
        lent.writestr("lent-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: lent\nVersion: 1\n")
        lent.writestr("lent-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        record = "".join(f"{name},,\n" for name in [*lent.namelist(), "lent-1.dist-info/RECORD"])
        lent.writestr("lent-1.dist-info/RECORD", record)
    return folder


def by_pip(folder: Path, wheel: Path, lent: Path) -> Path:
    """``pip install`` into an empty environment; where its programs are. The libraries satisfy what is required."""
    venv.create(folder)
    for each in (lent, wheel):
        run(Path(sys.executable), "-m", "pip", "--python", str(folder), "install", "--quiet", "--no-index", str(each))
    return folder / "bin"


def by_uv(folder: Path, wheel: Path, lent: Path) -> Path:
    """``uv tool install``. What is required must be in its own environment, so that is overruled."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [re.split(r"[\[<>=]", each)[0] for each in required]
    (folder / "none.txt").write_text("".join(f"{name}; python_version < '3'\n" for name in names))
    places = {"UV_TOOL_DIR": folder / "tools", "UV_TOOL_BIN_DIR": folder / "bin", "UV_CACHE_DIR": folder / "cache"}
    options = ["--quiet", "--offline", "--overrides", str(folder / "none.txt"), "--with", str(lent)]
    run(PROGRAMS_OF_TESTS / "uv", "tool", "install", *options, "--python", sys.executable, str(wheel), **places)
    return folder / "bin"


def by_pipx(folder: Path, wheel: Path, lent: Path) -> Path:
    """``pipx install``."""
    places = {
        "PIPX_HOME": folder / "home", "PIPX_BIN_DIR": folder / "bin", "PIPX_MAN_DIR": folder / "man",
        "UV_CACHE_DIR": folder / "cache",
    }  # fmt: skip
    options = ["--quiet", "--skip-maintenance", "--backend", "uv", "--preinstall", str(lent)]
    run(PROGRAMS_OF_TESTS / "pipx", "install", *options, "--pip-args=--no-deps --no-index", str(wheel), **places)
    return folder / "bin"


#: Where pip puts the programs of the tests, which is not where a worktree has its interpreter.
PROGRAMS_OF_TESTS = PROGRAMS if (PROGRAMS / "uv").exists() else Path(LIBRARIES).parents[2] / "bin"


def run(program: Path, *words: str, **places: Path) -> None:
    environment = {**os.environ, **{key: str(place) for key, place in places.items()}}
    done = subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.fixture(scope="module", params=[by_pip, by_uv, by_pipx], ids=["pip", "uv", "pipx"])
def programs(request: pytest.FixtureRequest, wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the installed program is."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    (wheel,) = wheels.glob("clearway-*.whl")
    made: Path = request.param(folder, wheel, wheels / "lent-1-py3-none-any.whl")
    return made


def said(programs: Path, *words: str, given: str | None = None) -> str:
    done = subprocess.run(
        [programs / "clearway", *words], cwd="/", env=PLAIN, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_says_its_version(programs: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert said(programs, "--version") == f"clearway {version}\n"


@pytest.mark.parametrize("programs", [by_uv], ids=["uv"], indirect=True)
def test_it_decides_outside_the_checkout_with_the_profiles_that_it_brings(programs: Path) -> None:
    example = (ROOT / "config" / "examples" / "gang-preempt.yaml").read_text()
    assert '"preemptor":"default/training"' in said(programs, "simulate", "-", "--profile", "volcano", given=example)


def test_its_data_files_are_those_of_the_checkout_and_its_metadata_have_the_readme(programs: Path) -> None:
    python = (programs / "clearway").resolve().parent / "python"
    asked = "from actors.documents.shipped import CONFIG; print(CONFIG)"
    where = subprocess.run([python, "-c", asked], cwd="/", env=PLAIN, capture_output=True, text=True, check=True)
    config = Path(where.stdout.strip())
    assert config.is_relative_to(python.parents[1])
    for file in (ROOT / "config").rglob("*.*"):
        assert (config / file.relative_to(ROOT / "config")).read_bytes() == file.read_bytes()
    (metadata,) = config.parents[1].glob("clearway-*.dist-info/METADATA")
    assert (ROOT / "README.md").read_text().splitlines()[0] in message_from_string(metadata.read_text()).get_payload()
