"""Pages and the shipped file name every setting, key of a profile, plugin and metric that there is, and no other."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from actors.cluster_file import documents, task_documents
from actors.configuration.profiles import FOLDER, Profile
from actors.configuration.settings import Settings, TelemetrySettings
from actors.configuration.settings_sources import SHIPPED
from actors.observability.telemetry import start
from pipeline.plugins.registry import PLUGINS, POINTS
from pipeline.policy import ExtensionPoint

DOCS = Path(__file__).parents[3] / "docs"
OPERATIONS, PROFILES, PROTOCOL = ((DOCS / f"{name}.md").read_text() for name in ("operations", "profiles", "protocol"))
#: Where all plugins on victims may be asked; a page names those points at which one has an opinion.
ON_VICTIMS = {ExtensionPoint.EVICTABLE, ExtensionPoint.PREEMPTABLE, ExtensionPoint.RECLAIMABLE}
#: Belongs into no file.
SECRET = "redis_password"
#: Keys of older profiles, which the page names beside their successor.
OLDER = {"gang_aware_preempt", "gang_aware_reclaim"}


def rows(page: str, heading: str) -> Iterator[list[str]]:
    """The cells of each row below the head of the first table under a heading."""
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None
    for line in table[0].splitlines()[2:]:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def names(text: str) -> list[str]:
    return re.findall(r"`([\w.-]+)`", text)


def settings() -> set[str]:
    """Every setting, those of tables with the name of their table."""
    result = set()
    for name, field in Settings.model_fields.items():
        table = field.annotation
        nested = isinstance(table, type) and issubclass(table, BaseModel)
        result |= {f"{name}.{key}" for key in table.model_fields} if nested else {name}
    return result


def flat(tables: dict[str, Any]) -> set[str]:
    return {
        f"{name}.{key}" if key else name
        for name, value in tables.items()
        for key in (value if isinstance(value, dict) else ("",))
    }


def test_the_shipped_file_names_every_setting_but_the_secret() -> None:
    text = re.sub(r"^# (?=\w+ = )", "", SHIPPED.read_text(), flags=re.MULTILINE)
    assert flat(tomllib.loads(text)) == settings() - {SECRET}


def test_every_key_of_a_cluster_file_is_named() -> None:
    table = PROTOCOL.split("\n## Documents\n", 1)[1].split("\n## ", 1)[0]
    models = [one for home in (documents, task_documents) for one in vars(home).values() if isinstance(one, type)]
    ours = [one for one in models if issubclass(one, BaseModel) and one.__module__.startswith("actors.cluster_file.")]
    keys = {key for one in ours for key in one.model_fields}
    assert {"nodes", "tolerations"} <= keys <= set(names(table))


def test_the_table_of_marks_explains_every_meaning_in_it() -> None:
    text = (FOLDER.parent / "manifests.toml").read_text()
    explained = set(re.findall(r"[a-z_]+", text.split("# means: ")[1].split("\n\n")[0]))
    assert {mark["means"] for mark in tomllib.loads(text)["marks"]} <= explained


def test_every_setting_that_operations_explains_exists() -> None:
    assert {name for key, _ in rows(OPERATIONS, "Settings") for name in names(key)} <= settings()


def test_every_key_of_a_profile_is_explained_with_its_value_in_default() -> None:
    model = Profile.model_validate(tomllib.loads((FOLDER / "default.toml").read_text())).model_dump()
    explained = {}
    for key, default, *_ in rows(PROFILES, "Keys"):
        values = [default] if len(names(key)) == 1 else default.split(", ")
        explained.update(dict(zip(names(key), values, strict=True)))
    assert explained.keys() == model.keys() - {"plugins"} - OLDER
    told = {key: value for key, value in explained.items() if isinstance(model[key], bool | int | float | str)}
    assert {key: str(model[key]).lower().removesuffix(".0") for key in told} == {
        key: value.strip("`") for key, value in told.items()
    }


@pytest.mark.parametrize("name", PLUGINS)
def test_the_points_and_arguments_of_a_plugin_are_named(name: str) -> None:
    (row,) = (row for row in rows(PROFILES, "Plugins") if names(row[0]) == [name])
    points, arguments = row[1], row[2] if len(row) > 2 else ""
    named = {point for point in names(points) if point in set(ExtensionPoint)}
    named |= ON_VICTIMS if points.startswith("the same:") else set()
    assert named <= set(POINTS[name])
    assert set(POINTS[name]) - named <= ON_VICTIMS
    assert set(PLUGINS[name].ARGUMENTS) <= set(names(arguments))


def test_every_metric_is_named_and_every_metric_that_is_named_exists() -> None:
    figures = start(TelemetrySettings(), "test").figures
    there = {figure.name for figure in vars(figures).values()}
    of_each_process = {"clearway.role", "clearway.fleet"}
    assert set(re.findall(r"`(clearway\.[\w.]+)`", OPERATIONS)) == there | of_each_process
