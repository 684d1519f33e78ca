"""Settings come from file, environment and options in that order; a wrong one is one sentence with its key."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from actors.configuration.settings import Settings, SettingsRefused
from actors.configuration.settings_sources import SHIPPED, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in list(os.environ):
        if variable.startswith(("CLEARWAY_", "OTEL_")):
            monkeypatch.delenv(variable)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_file_says_what_the_defaults_are() -> None:
    assert SHIPPED.exists()
    assert load_settings() == Settings()


def test_environment_goes_over_file_and_options_over_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 'searchers = 3\ndebounce_ms = 3\nfleet = "file"\n[limits]\ndepth = 9\nmessages = 9\n')
    monkeypatch.setenv("CLEARWAY_DEBOUNCE_MS", "4")
    monkeypatch.setenv("CLEARWAY_FLEET", "variable")
    monkeypatch.setenv("CLEARWAY_LIMITS__DEPTH", "10")
    settings = load_settings(path, fleet="option", ray_address=None)
    assert (settings.searchers, settings.debounce_ms, settings.fleet) == (3, 4, "option")
    assert (settings.limits.wire.depth, settings.limits.wire.messages) == (10, 9)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("searchers = 0", "searchers: expected at least 1, found 0"),
        ("eviction_deadline_s = inf", "eviction_deadline_s: expected"),
        ("checkpoint_every_s = 1e300", "checkpoint_every_s: expected at most 1000000000, found 1e+300"),
        ("serchers = 2", "serchers: expected one of"),
        ("[limits]\ndepth = 'deep'", 'limits.depth: expected a whole number, found "deep"'),
        ("[telemetry]\nexporter = 'fax'", "telemetry.exporter: expected 'auto', 'none', 'console' or 'otlp'"),
        ("[telemetry]\nexportr = 'otlp'", "telemetry.exportr: expected one of exporter, protocol"),
        ("telemetry = 3", "telemetry: expected a mapping"),
        ("fleet = 'Not A Label'", "fleet: expected at most 63 of a-z, 0-9 and -"),
        ("redis_url = 'http://x'", "redis_url: expected a URL that begins with redis://, rediss:// or unix://"),
        ("searchers = ", "is not TOML: Invalid value"),
        ("redis_url = 'redis://me:hidden/x@there/0'", "redis_url: expected scheme://user:password@host"),
        ("redis_url = 'redis://there/main'", "redis_url: expected scheme://user:password@host:port/number"),
        ("redis_url = 'redis://there/0/1'", "redis_url: expected scheme://user:password@host:port/number"),
        ("redis_url = 'redis://there?timeout=1'", "redis_url: expected scheme://user:password@host:port/number"),
        ("redis_url = 'redis://me:hid#den@there'", "redis_url: expected scheme://user:password@host"),
        ("redis_url = 'unix://'", "redis_url: expected unix:///path?db=number"),
        ("redis_url = 'unix:///path?db=x'", "redis_url: expected unix:///path?db=number"),
        ("searchers = true", "searchers: expected a number, found true"),
        ("broker_wait_s = true", "broker_wait_s: expected a number, found true"),
        ("[limits]\ntasks = true", "limits.tasks: expected a number, found true"),
        ("dead_letters_kept = 10000000000000000000", "dead_letters_kept: expected at most 2147483647"),
        ("redis_ca_file = '/nowhere.pem'", "redis_ca_file: expected a file that exists"),
        ("redis_ca_file = '/dev/../etc/passwd'", "redis_ca_file: expected redis_url to begin with rediss://"),
        (
            "redis_password = 'hidden'\nredis_password_file = '/there'",
            "redis_password: expected it or redis_password_file, found both",
        ),
        ("[telemetry]\nendpoint = 'http://me:hidden@there'", "telemetry.endpoint: expected no user or password in it"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_keys_path(tmp_path: Path, text: str, why: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsRefused) as refusal:
        load_settings(path)
    assert str(refusal.value).startswith(f"{path}: {why}")
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefused, match=r"none\.toml: cannot be read: .*No such file"):
        load_settings(tmp_path / "none.toml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsRefused, match="cannot be read"):
        load_settings(path)


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        (
            "CLEARWAY_SEARCHERS",
            "many",
            r"^environment \(CLEARWAY_SEARCHERS\): searchers: expected a whole number, found \"many\"$",
        ),
        (
            "CLEARWAY_SERCHERS",
            "2",
            r"^environment: CLEARWAY_SERCHERS: no such setting; did you mean CLEARWAY_SEARCHERS\?$",
        ),
        ("CLEARWAY_NOPE", "2", r"^environment: CLEARWAY_NOPE: no such setting$"),
        ("CLEARWAY_FLEET__NAME", "a", r"^environment: CLEARWAY_FLEET__NAME: no such setting; did you mean CLEARWAY_"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "fax", r"^environment \(OTEL_EXPORTER_OTLP_PROTOCOL\): telemetry.protocol: "),
        (
            "CLEARWAY_LIMITS__DEEP",
            "2",
            r"^environment \(CLEARWAY_LIMITS__DEEP\): limits.deep: expected one of .*; did you mean depth\?$",
        ),
        (
            "CLEARWAY_LIMITS__STATE__TASKS",
            "2",
            r"^environment \(CLEARWAY_LIMITS__STATE__TASKS\): limits.state: expected one of",
        ),
        ("CLEARWAY_LIMITS", "{", r"^environment \(CLEARWAY_LIMITS\): limits: expected JSON$"),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, why: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsRefused, match=why):
        load_settings()


def test_a_wrong_option_is_refused_as_one() -> None:
    with pytest.raises(SettingsRefused, match=r"^option: fleet: "):
        load_settings(fleet="A B")


def test_secrets_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARWAY_REDIS_URL", "redis://me:hidden@there")
    monkeypatch.setenv("CLEARWAY_REDIS_PASSWORD", "hidden")
    settings = load_settings()
    assert settings.password == "hidden"
    for shown in (repr(settings), str(settings), settings.model_dump_json(), repr(settings.model_dump())):
        assert "hidden" not in shown
    assert pickle.loads(pickle.dumps(settings)) == settings
    monkeypatch.setenv("CLEARWAY_REDIS_URL", "hidden")
    with pytest.raises(SettingsRefused) as refusal:
        load_settings()
    assert "hidden" not in str(refusal.value)
    assert "hidden" not in repr(refusal.value.__cause__)


def test_a_password_may_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden\n")
    assert load_settings(redis_password_file=secret).password == "hidden"
    with pytest.raises(SettingsRefused, match="redis_password_file: cannot be read"):
        _ = load_settings(redis_password_file=tmp_path / "none").password


def test_an_endpoint_turns_traces_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().telemetry.chosen_exporter == "none"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    telemetry = load_settings().telemetry
    assert (telemetry.chosen_exporter, telemetry.protocol, telemetry.endpoint) == (
        "otlp",
        "http",
        "http://collector:4318",
    )


def test_a_profile_named_by_an_option_prevails_over_a_path_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "runtime.toml"
    file.write_text('profile_path = "mine.toml"\n')
    assert load_settings(file).policy_profile == "mine.toml"
    assert load_settings(file, profile="kai").policy_profile == "kai"


def test_a_profile_named_by_a_variable_prevails_over_a_path_in_the_file_and_not_over_that_of_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runtime.toml"
    file.write_text('profile_path = "mine.toml"\n')
    monkeypatch.setenv("CLEARWAY_PROFILE", "kai")
    assert load_settings(file).policy_profile == "kai"
    monkeypatch.setenv("CLEARWAY_PROFILE_PATH", "other.toml")
    assert load_settings(file).policy_profile == "other.toml"
    assert load_settings(file, profile="volcano").policy_profile == "volcano"
