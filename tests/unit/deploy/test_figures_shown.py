"""Alerts and dashboard ask for figures that are there, and operations.md says what each alert means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.configuration.settings import TelemetrySettings
from actors.observability.telemetry import start

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboards/clearway.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
EXPRESSIONS = {
    **{rule["alert"]: [rule["expr"]] for rule in RULES},
    **{panel["title"]: [target["expr"] for target in panel["targets"]] for panel in PANELS},
}


def names() -> set[str]:
    """Every figure as Prometheus calls it, each recorded once."""
    telemetry = start(TelemetrySettings(), "test")
    for instrument in vars(telemetry.figures).values():
        for record in ("set", "add", "record"):
            if hasattr(instrument, record):
                getattr(instrument, record)(1)
    return {sample.name for family in telemetry.exposed.families() for sample in family.samples}


@pytest.mark.parametrize("title", EXPRESSIONS)
def test_every_figure_that_is_asked_for_is_there(title: str) -> None:
    asked = {name for said in EXPRESSIONS[title] for name in re.findall(r"clearway_\w+", said)}
    assert asked
    assert asked <= names()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_no_alert_of_one_fleet_is_hidden_by_another_in_the_same_prometheus(rule: dict[str, Any]) -> None:
    for by in re.findall(r"\b(?:sum|min|max|avg|count)\b\s*(\w*\s*\([^)]*\))", rule["expr"]):
        assert re.match(r"by \(fleet\b", by)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_shows_the_fleet_that_is_chosen(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        asked = re.findall(r"clearway_\w+", target["expr"])
        assert asked
        assert re.findall(r'clearway_\w+(?=\{fleet=~"\$fleet"\})', target["expr"]) == asked


def test_the_fleets_to_choose_from_are_those_whose_services_say_how_they_are() -> None:
    (fleet,) = DASHBOARD["templating"]["list"]
    assert (fleet["name"], fleet["query"]["query"]) == ("fleet", "label_values(clearway_service_ready, fleet)")
    assert "clearway_service_ready" in names()


def test_a_fleet_whose_services_are_all_gone_is_missed() -> None:
    (said,) = EXPRESSIONS["ClearwayNothingDecides"]
    assert "last_over_time(clearway_service_leads[1d])" in said
    assert "unless max by (fleet) (clearway_service_leads)" in said


def test_what_each_alert_means_stands_in_operations() -> None:
    page = (DEPLOY.parent / "docs/operations.md").read_text()
    (section,) = re.findall(r"### Alerts\n(.*?)\n## ", page, re.S)
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == [rule["alert"] for rule in RULES]


def test_every_target_of_prometheus_is_a_service_of_compose() -> None:
    compose = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text())["services"]
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    for target in job["static_configs"][0]["targets"]:
        name, _, port = target.partition(":")
        assert compose[name]["environment"]["CLEARWAY_HEALTH"].endswith(f":{port}")
