"""Files of others are read with bounds: too large, too deep or too long a number is one sentence that says where."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cluster_file.plain_data import ClusterFileRefused, read_mapping
from actors.cluster_file.reader import read_cluster
from actors.configuration.profiles import load_profile
from actors.configuration.settings import SettingsRefused
from actors.configuration.settings_sources import load_settings
from actors.documents.bounded_files import SETTINGS_BYTES, FileRefused, text_of, toml_of

DEEP = "a = " + "[" * 50_000
LONG_KEY = ".".join(["a"] * 100_000) + " = 1"
NUMBER = f"searchers = {'9' * 5_000}"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "given.toml"
    path.write_text(text)
    return path


def test_no_more_is_read_than_may_be_there(tmp_path: Path) -> None:
    path = written(tmp_path, "x" * 100)
    assert text_of(path, 100) == "x" * 100
    with pytest.raises(FileRefused, match="expected at most 99 bytes, found more"):
        text_of(path, 99)
    with pytest.raises(FileRefused, match="expected at most 1048576 bytes"):
        text_of(Path("/dev/zero"))


@pytest.mark.parametrize("text", [DEEP, LONG_KEY, NUMBER, "# " + "x" * SETTINGS_BYTES, "a = \x00"], ids=len)
def test_settings_and_profiles_that_overwhelm_are_refused_by_their_file(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    for read in (load_settings, lambda file: load_profile(str(file))):
        with pytest.raises(SettingsRefused, match=r"given\.toml|profile: ") as refusal:
            read(path)
        assert len(str(refusal.value)) < 1_000


@pytest.mark.parametrize("value", ["[" * 60_000, '{"depth": ' * 10_000, "9" * 5_000, "{}x"], ids=len)
def test_a_variable_that_overwhelms_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CLEARWAY_LIMITS", value)
    with pytest.raises(SettingsRefused, match="environment"):
        load_settings()


@given(st.text(max_size=200))
def test_no_text_at_all_makes_the_reader_of_tables_fail(text: str) -> None:
    try:
        toml_of(text)
    except FileRefused as refusal:
        assert str(refusal)  # noqa: PT017 - either is right


def nested(depth: int) -> str:
    """A subgroup within a subgroup within a subgroup, as a cluster file has them."""
    parts = '{"name": "s", "children": [' * depth
    return f'{{"version": 1, "podgroups": [{{"name": "g", "queue": "q", "subgroups": [{parts}{"]}" * depth}]}}]}}'


@pytest.mark.parametrize("depth", [35, 400, 5_000, 200_000])
def test_a_cluster_file_that_nests_too_deep_is_refused(depth: int) -> None:
    for text in (nested(depth), f"x: {'[' * depth}{']' * depth}"):
        with pytest.raises(ClusterFileRefused, match=r"levels of nesting|stack|keys|one of|depth"):
            read_cluster(read_mapping(text, "given.json"))


@pytest.mark.parametrize(
    "value", ["9" * 5_000, "1e999999", "NaN", "-Infinity", '"' + "9" * 1_000_000 + '"', '"1e99999999"', "-1", "true"]
)
def test_a_quantity_that_is_none_is_refused_by_its_path(value: str) -> None:
    text = f'{{"version": 1, "nodes": [{{"name": "n", "allocatable": {{"cpu": {value}}}}}]}}'
    with pytest.raises(ClusterFileRefused, match=r"nodes\[0\]\.allocatable\.cpu|given\.json") as refusal:
        read_cluster(read_mapping(text, "given.json"))
    assert len(str(refusal.value)) < 300


def test_a_million_wrong_values_are_one_sentence() -> None:
    with pytest.raises(ClusterFileRefused, match=re.escape("nodes[0]: expected a mapping, found 0")):
        read_cluster({"version": 1, "nodes": [0] * 1_000_000})
    with pytest.raises(ClusterFileRefused, match="expected at most 128 keys, found 100000"):
        read_cluster({"version": 1, "nodes": [{"name": "n", "allocatable": {str(at): 1 for at in range(100_000)}}]})


SECTIONS = ("nodes", "topology", "queues", "podgroups", "priority_classes", "disruption_budgets", "policy")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


@given(ANYTHING, st.sampled_from(SECTIONS))
def test_no_values_at_all_make_the_reader_of_cluster_files_fail(value: object, section: str) -> None:
    try:
        read_cluster(read_mapping(json.dumps({"version": 1, section: value}), "given.json"))
    except ClusterFileRefused as refusal:
        assert str(refusal)  # noqa: PT017 - either is right
