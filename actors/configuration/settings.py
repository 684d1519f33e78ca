"""The settings of an operator: what there is, defaults and limits. Secrets may come from a file and are never shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from actors.documents.bounded_files import text_of
from actors.documents.model import Lasting
from actors.documents.safe_msgpack import WireLimits
from actors.documents.state_limits import STATE_LIMITS, StateLimits

#: With what the names of their variables begin.
PREFIX = "CLEARWAY_"
#: The tables of the file while settings are loaded. The library builds its sources itself and takes no argument.
GIVEN_BY_FILE: ContextVar[Mapping[str, Any]] = ContextVar("GIVEN_BY_FILE", default=MappingProxyType({}))

Whole = Annotated[int, Field(ge=1, lt=2**31)]
#: What may follow the host of a broker's URL: the number of its database.
_DATABASE = re.compile(r"(?:/[0-9]{0,9})?(?:\?db=[0-9]{1,9})?")
_FILE_AND_DATABASE = re.compile(r"/[^?#]+(?:\?db=[0-9]{1,9})?")


def _matching(pattern: str, expected: str) -> AfterValidator:
    """Refuse text that does not match a pattern, and say in words what was expected."""

    def checked(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(expected)
        return value

    return AfterValidator(checked)


class SettingsRefused(Exception):
    """The settings cannot be used; the message is one sentence for the operator."""


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_is_number, get_args(annotation)))


class _Numbers(BaseModel):
    """Refuses true and false where a number is expected; pydantic would read them as 1 and 0."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_switch(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and _is_number(cls.model_fields[str(info.field_name)].annotation):
            raise ValueError("expected a number")
        return value


class _Section(_Numbers):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LimitSettings(_Section):
    """Limits of messages on the wire, and of what a fleet may hold."""

    entry_bytes: Annotated[int, Field(ge=1024, le=64 << 20)] = 1 << 20
    depth: Annotated[int, Field(ge=4, le=512)] = 32
    messages: Whole = 10_000
    tasks: Annotated[int, Field(ge=1, lt=2**31)] = STATE_LIMITS.tasks
    resources: Annotated[int, Field(ge=4, le=1_024)] = STATE_LIMITS.resources
    queues: Annotated[int, Field(ge=1, lt=2**31)] = STATE_LIMITS.queues
    domains: Annotated[int, Field(ge=1, lt=2**31)] = STATE_LIMITS.domains
    state_bytes: Annotated[int, Field(ge=1 << 20, lt=2**62)] = STATE_LIMITS.state_bytes

    @property
    def state(self) -> StateLimits:
        """What the fleet may hold, for live states and for cluster files."""
        return StateLimits(self.tasks, self.resources, self.queues, self.domains, self.state_bytes)

    @property
    def wire(self) -> WireLimits:
        """The limits as the decoder takes them."""
        return WireLimits(self.entry_bytes, self.depth, self.messages)


class TelemetrySettings(_Section):
    """Where traces and metrics go."""

    exporter: Literal["auto", "none", "console", "otlp"] = "auto"
    protocol: Literal["grpc", "http"] = "grpc"
    endpoint: str | None = None
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    #: At most how many of the newest spans the broker keeps for the live view; 0 keeps none.
    spans_kept: Annotated[int, Field(ge=0, lt=2**31)] = 20_000

    @field_validator("endpoint")
    @classmethod
    def _has_no_user(cls, value: str | None) -> str | None:
        # An endpoint appears in logs, so it must not hold a password.
        if value is not None and "@" in value:
            raise ValueError("expected no user or password in it; put them into OTEL_EXPORTER_OTLP_HEADERS")
        return value

    @property
    def chosen_exporter(self) -> Literal["none", "console", "otlp"]:
        """The exporter to use; ``auto`` means OTLP if an endpoint is set."""
        if self.exporter == "auto":
            return "none" if self.endpoint is None else "otlp"
        return self.exporter


class Settings(_Numbers, BaseSettings):
    """All settings of the program, checked."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", frozen=True, extra="forbid", hide_input_in_errors=True,
        env_ignore_empty=True,
    )  # fmt: skip

    fleet: Annotated[
        str,
        _matching(
            r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?",
            "expected at most 63 of a-z, 0-9 and -, with a letter or a digit at both ends",
        ),
    ] = "demo"
    #: None: the embedded broker is started. It is a secret, since it may hold a password.
    redis_url: SecretStr | None = None
    redis_username: str | None = None
    redis_password: SecretStr | None = None
    redis_password_file: Path | None = None
    #: The authority that a ``rediss://`` broker must be certified by; None: the authorities of the system.
    redis_ca_file: FilePath | None = None
    #: Certificate and key of this client, for a broker that asks for them.
    redis_cert_file: FilePath | None = None
    redis_key_file: FilePath | None = None
    broker_binary: Path | None = None
    #: None: Ray is started in this process.
    ray_address: str | None = None
    #: How many searchers. None, written ``auto``: one for each processor of the Ray cluster, later ones included.
    searchers: Annotated[int, Field(ge=1, le=4096)] | None = 2
    debounce_ms: Annotated[int, Field(ge=0, le=10_000)] = 0
    #: At most how many events a simulated fleet puts into one entry.
    events_per_entry: Annotated[int, Field(ge=1, le=10_000)] = 500
    entries_per_read: Annotated[int, Field(ge=1, le=10_000)] = 500
    domains_per_attempt: Whole = 4_096
    #: The dispatcher searches in its own process below this number of cells (domains times tasks).
    in_place_cells: Annotated[int, Field(ge=0, lt=2**62)] = 262_144
    lease_ttl_s: Annotated[float, Field(ge=0.1, le=300)] = 5.0
    #: Whether to refuse a broker that answers a commit before it is on the disk.
    commit_synced: bool = True
    eviction_deadline_s: Lasting = 120.0
    checkpoint_every_s: Lasting = 30.0
    #: The log names a reader that is further behind than this, in seconds.
    lag_warn_s: Lasting = 30.0
    #: How long an entry that a checkpoint covers is kept for a reader that does not acknowledge it, in seconds.
    unread_kept_s: Lasting = 86_400.0
    dead_letters_kept: Whole = 10_000
    #: How long to wait for an unreachable broker, in seconds; None: without limit.
    broker_wait_s: Lasting | None = None
    profile: str = "default"
    profile_path: Path | None = None
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: Decide and record, but in a stream that no connector reads.
    shadow: bool = False
    #: Where health and figures are served: ``host:port``, ``auto`` or ``off``.
    health: Annotated[str, _matching(r"auto|off|.+:\d{1,5}", "expected host:port, auto or off")] = "auto"
    limits: LimitSettings = LimitSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @field_validator("searchers", mode="before")
    @classmethod
    def _as_many_as_there_are(cls, value: Any) -> Any:
        return None if value == "auto" else value

    @field_validator("redis_url")
    @classmethod
    def _is_broker_url(cls, value: SecretStr | None) -> SecretStr | None:
        schemes = ("redis://", "rediss://", "unix://")
        if value is None:
            return None
        if not value.get_secret_value().startswith(schemes):
            raise ValueError(f"expected a URL that begins with {', '.join(schemes[:2])} or {schemes[2]}")
        expected = "scheme://user:password@host:port/number, with %-codes for what is neither letter nor digit"
        try:
            parts = urlsplit(value.get_secret_value())
            # A password with a slash is read as a port, and the message of the library would show it.
            parts.port  # noqa: B018 - reading the property computes and checks it
        except ValueError:
            raise ValueError(f"expected {expected}") from None
        # The library takes a database that is no number for number 0, and any key after ? for one of its own.
        after, form = parts._replace(scheme="", netloc="").geturl(), _DATABASE
        if parts.scheme == "unix":
            form, expected = _FILE_AND_DATABASE, "unix:///path?db=number, or without ?db=number"
        if form.fullmatch(after) is None:
            raise ValueError(f"expected {expected}")
        return value

    @model_validator(mode="after")
    def _certificates_have_a_use(self) -> Self:
        secure = self.redis_url is not None and self.redis_url.get_secret_value().startswith("rediss://")
        for key in ("redis_ca_file", "redis_cert_file", "redis_key_file"):
            if getattr(self, key) is not None and not secure:
                raise ValueError(f"{key}: expected redis_url to begin with rediss://")
        if self.redis_key_file is not None and self.redis_cert_file is None:
            raise ValueError("redis_key_file: expected redis_cert_file beside it")
        return self

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        if self.redis_password is not None and self.redis_password_file is not None:
            raise ValueError("redis_password: expected it or redis_password_file, found both")
        return self

    @property
    def policy_profile(self) -> str:
        """The policy profile, by path where the settings give one."""
        return str(self.profile_path) if self.profile_path is not None else self.profile

    @property
    def outgoing(self) -> WireLimits:
        """Limits of the entries that the simulated fleet writes."""
        wire = self.limits.wire
        return replace(wire, messages=min(wire.messages, self.events_per_entry))

    @property
    def password(self) -> str | None:
        """The password of the broker, from the setting or from the file; None if there is none.

        Raises
        ------
        SettingsRefused
            If the file cannot be read.
        """
        if self.redis_password is not None:
            return self.redis_password.get_secret_value()
        if self.redis_password_file is None:
            return None
        try:
            return text_of(self.redis_password_file).strip()
        except UnicodeDecodeError:  # its message would show the password
            raise SettingsRefused("redis_password_file: cannot be read: expected UTF-8") from None
        except (OSError, ValueError) as refusal:
            raise SettingsRefused(f"redis_password_file: cannot be read: {refusal}") from refusal

    @property
    def password_again(self) -> Path | None:
        """The file that the password comes from, to be read again when it was replaced."""
        return self.redis_password_file.absolute() if self.redis_password_file is not None else None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources in falling precedence: options, environment, file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, dict(GIVEN_BY_FILE.get()))
