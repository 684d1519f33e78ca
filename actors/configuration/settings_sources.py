"""Where settings come from. In rising precedence: defaults, config/runtime.toml, ``CLEARWAY_*`` variables, options.

A wrong setting is refused with one sentence that names its source and its key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from actors.configuration.settings import GIVEN_BY_FILE, PREFIX, Settings, SettingsRefused
from actors.documents.bounded_files import FileRefused, text_of, toml_of
from actors.documents.messages import meant, one_sentence
from actors.documents.shipped import CONFIG

SHIPPED = CONFIG / "runtime.toml"

#: Top keys whose values are, or may hold, a secret: messages do not show these.
_SECRET = ("redis_url", "redis_password", "telemetry")
#: Settings that are tables, whose keys have variables of their own.
_TABLES = ("limits", "telemetry")
#: Standard variables of OpenTelemetry, by the key of the table ``telemetry`` that they stand for.
_OPENTELEMETRY = {"endpoint": "OTEL_EXPORTER_OTLP_ENDPOINT", "protocol": "OTEL_EXPORTER_OTLP_PROTOCOL"}


def load_settings(path: Path | None = None, **options: Any) -> Settings:
    """Read the settings of this process.

    Parameters
    ----------
    path
        A TOML file; None: the shipped one, if it exists.
    options
        Options of the command line, by field name; None for one that was not given.

    Raises
    ------
    SettingsRefused
        For a file that does not exist or is not TOML, an unknown key or variable, or an invalid value.
    """
    file = path if path is not None else (SHIPPED if SHIPPED.exists() else None)
    tables = {} if file is None else _read(file)
    _refuse_unknown_variables()
    _adopt_opentelemetry(tables)
    given = {key: value for key, value in options.items() if value is not None}
    if "profile" in given:  # a name prevails over a path of a lower source
        given["profile_path"] = None
    elif os.environ.get(f"{PREFIX}PROFILE"):
        tables.pop("profile_path", None)
    token = GIVEN_BY_FILE.set(tables)
    try:
        return Settings(**given)
    except ValidationError as refusal:
        location = refusal.errors()[0]["loc"]
        told = one_sentence(refusal, model=Settings, secret=_SECRET)
        raise SettingsRefused(f"{_source(location, given, file)}: {told}") from None
    except SettingsError as refusal:  # a variable of a table, whose value is read as JSON
        table = next((field for field in Settings.model_fields if f'"{field}"' in str(refusal)), "")
        raise SettingsRefused(f"environment ({PREFIX}{table.upper()}): {table}: expected JSON") from None
    except RecursionError:
        raise SettingsRefused("environment: expected values that nest less deep") from None
    finally:
        GIVEN_BY_FILE.reset(token)


def _read(file: Path) -> dict[str, Any]:
    try:
        text = text_of(file)
    except (OSError, ValueError) as refusal:
        raise SettingsRefused(f"{file}: cannot be read: {refusal}") from refusal
    try:
        return toml_of(text)
    except FileRefused as refusal:
        raise SettingsRefused(f"{file}: is not TOML: {refusal}") from refusal


def _refuse_unknown_variables() -> None:
    """Refuse ``CLEARWAY_*`` variables that name no setting; a mistyped one would have no effect and no message."""
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX):
            field, within, _ = variable.removeprefix(PREFIX).lower().partition("__")
            if field not in Settings.model_fields or (within and field not in _TABLES):
                # Without the prefix, which would make all names look alike.
                near = meant(f"expected one of {', '.join(Settings.model_fields)}", field)
                hint = re.sub(r"mean (\w+)", lambda name: f"mean {PREFIX}{name[1].upper()}", near)
                raise SettingsRefused(f"environment: {variable}: no such setting{hint}")


def _adopt_opentelemetry(tables: dict[str, Any]) -> None:
    """Fill in endpoint and protocol from the standard variables of OpenTelemetry."""
    ours = tables.setdefault("telemetry", {})
    endpoint, protocol = map(os.environ.get, _OPENTELEMETRY.values())
    if isinstance(ours, dict):  # any other type is refused later, with its path
        if endpoint:
            ours["endpoint"] = endpoint
        if protocol:
            ours["protocol"] = "http" if protocol.startswith("http") else protocol


def _source(location: tuple[int | str, ...], options: Mapping[str, Any], file: Path | None) -> str:
    """The source of a value, for messages: the option, the variable or the file."""
    if location and location[0] in options:
        return "option"
    steps = [str(step).upper() for step in location]
    for depth in range(len(steps), 0, -1):
        variable = PREFIX + "__".join(steps[:depth])
        for given in sorted(os.environ):
            if given == variable or (depth == len(steps) and given.startswith(f"{variable}__")):
                return f"environment ({given})"
    standard = _OPENTELEMETRY.get(steps[-1].lower()) if location[:1] == ("telemetry",) else None
    if standard is not None and os.environ.get(standard):
        return f"environment ({standard})"
    return str(file) if file is not None else "settings"
