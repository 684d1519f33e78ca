"""Sentences about mistakes: what was probably meant is named."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from actors.cli.commands import app
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.cluster_file.reader import read_cluster
from actors.configuration.profiles import load_profile
from actors.configuration.settings import SettingsRefused
from actors.configuration.settings_sources import load_settings
from actors.documents.messages import meant, on_one_line


@pytest.mark.parametrize(
    ("expected", "found", "hint"),
    [
        ("expected one of nodes, queues", "ndoes", "; did you mean nodes?"),
        ("expected one of nodes, queues (so far)", "queus", "; did you mean queues?"),
        ("expected one of nodes, queues", "rack", ""),
        ("expected at least 1", "0", ""),
        ("expected one of nodes, queues", "ndoes" * 1_000_000, ""),
    ],
)
def test_the_word_that_is_near_is_named(expected: str, found: str, hint: str) -> None:
    assert meant(expected, found) == hint


def test_a_key_of_a_cluster_file_that_is_misspelled_is_known() -> None:
    with pytest.raises(ClusterFileRefused, match=r'found "ndoes"; did you mean nodes\?$'):
        read_cluster({"version": 1, "ndoes": []})


def test_a_key_that_is_endless_is_shortened() -> None:
    with pytest.raises(ClusterFileRefused, match=r"^nodes\[0\].x{60}…: ") as refused:
        read_cluster({"version": 1, "nodes": [{"name": "n", "allocatable": {}, "x" * 1_000_000: 1}]})
    assert len(str(refused.value)) < 400


def test_a_name_can_neither_end_a_line_nor_move_the_cursor() -> None:
    assert on_one_line("a\nb\x1b[2Jé\x85\u202e") == r"a\nb\x1b[2Jé\x85\u202e"


def test_a_profile_a_plugin_and_a_key_of_a_profile_that_are_misspelled_are_known(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match=r"found 'volcanoo'; did you mean volcano\?$"):
        load_profile("volcanoo")
    shipped = (Path(__file__).parents[4] / "config" / "profiles" / "default.toml").read_text()
    changed = {"gagn": shipped.replace('name = "gang"', 'name = "gagn"'), "actoins": "actoins = []\n"}
    for found, right in (("gagn", "gang"), ("actoins", "actions")):
        (tmp_path / "mine.toml").write_text(changed[found])
        with pytest.raises(SettingsRefused, match=rf"did you mean {right}\?"):
            load_profile(str(tmp_path / "mine.toml"))


def test_a_setting_that_is_misspelled_is_known(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("serchers = 2\n")
    with pytest.raises(
        SettingsRefused, match=r"serchers: expected one of [0-9]+ names, found \"serchers\"; did you mean searchers\?$"
    ):
        load_settings(tmp_path / "mine.toml")


def test_a_command_that_is_misspelled_is_known() -> None:
    assert "Did you mean 'simulate'?" in CliRunner().invoke(app, ["simulatee"]).output
