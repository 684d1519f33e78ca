"""The manifest for KubeRay fits this repository, its image, our own command line, and itself."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from actors.cli.commands import app
from actors.configuration.settings import Settings

ROOT = Path(__file__).parents[3]
CLUSTER, PIPELINE = yaml.safe_load_all((ROOT / "deploy/kuberay/clearway.yaml").read_text())
GROUPS = [CLUSTER["spec"]["headGroupSpec"], *CLUSTER["spec"]["workerGroupSpecs"]]
PODS: list[dict[str, Any]] = [*(group["template"]["spec"] for group in GROUPS), PIPELINE["spec"]["template"]["spec"]]
CONTAINERS: list[dict[str, Any]] = [pod["containers"][0] for pod in PODS]
(RUNS,) = PIPELINE["spec"]["template"]["spec"]["containers"]
HEAD = f"{CLUSTER['metadata']['name']}-head-svc:6379"
SECRETS = "/run/secrets/clearway"


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


def test_image_and_ray_are_our_versions() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert {container["image"] for container in CONTAINERS} == {f"clearway:{version}"}
    assert f"\nray=={CLUSTER['spec']['rayVersion']}\n" in (ROOT / "constraints.txt").read_text()


def test_the_command_line_understands_the_command() -> None:
    _, subcommand, *arguments = RUNS["args"]
    group = typer.main.get_command(app)
    with group.commands[subcommand].make_context(subcommand, list(arguments)) as context:
        assert context.params["ray_address"] == HEAD


def test_the_service_joins_the_cluster_that_it_drives() -> None:
    assert RUNS["command"] == ["deploy/join-ray", HEAD]
    assert "COPY deploy/join-ray " in (ROOT / "deploy/Dockerfile").read_text()


def test_every_variable_is_a_setting_of_ours_or_one_of_ray() -> None:
    ours = {name for name in environment(RUNS) if name.startswith("CLEARWAY_")}
    assert {name.removeprefix("CLEARWAY_").lower() for name in ours} <= Settings.model_fields.keys()
    assert environment(RUNS).keys() - ours == {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"}


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["name"])
def test_every_pod_asks_for_the_token_and_has_the_secrets_that_it_names(pod: dict[str, Any]) -> None:
    said = environment(pod["containers"][0])
    assert said["RAY_AUTH_MODE"] == "token"
    named = [value for value in said.values() if value.startswith("/run/secrets")]
    assert {str(Path(value).parent) for value in named} == {SECRETS}
    mounted = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert {one["name"]: one.get("secret") for one in pod["volumes"]}[mounted[SECRETS]] == {"secretName": "clearway"}


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda container: container["name"])
def test_every_container_says_how_it_is_and_has_no_rights_that_it_does_not_need(container: dict[str, Any]) -> None:
    for probe in ("livenessProbe", "readinessProbe"):
        (how,) = {"exec", "httpGet"} & container[probe].keys()
        assert how == ("httpGet" if container is RUNS else "exec")
    assert container["securityContext"] == {
        "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}
    }  # fmt: skip


def test_the_probes_of_the_service_ask_where_it_answers() -> None:
    (port,) = RUNS["ports"]
    assert environment(RUNS)["CLEARWAY_HEALTH"] == f"0.0.0.0:{port['containerPort']}"
    assert {RUNS[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {port["name"]}


def test_the_head_runs_no_search() -> None:
    head, *workers = [group["rayStartParams"] for group in GROUPS]
    assert head["num-cpus"] == "0"
    assert all(int(worker["num-cpus"]) > 0 for worker in workers)


def test_a_login_shell_in_the_image_finds_ray_since_kuberay_starts_it_in_one() -> None:
    image = (ROOT / "deploy/Dockerfile").read_text().rsplit("FROM ", 1)[1]
    before, _ = image.split("USER 10001\n")
    assert re.search(r"ln -s /opt/venv/bin/ray /usr/local/bin/ray$", before, re.MULTILINE)
