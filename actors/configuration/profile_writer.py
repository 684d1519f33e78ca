"""A profile as TOML, the way a person would write it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Defaults of a plugin's keys, which are left out.
_UNSAID: Mapping[str, Any] = {"tier": 0, "enabled": {"*": True}, "arguments": {}}


def profile_text(
    comment: str,
    keys: Mapping[str, Any],
    arguments: Mapping[str, Mapping[str, Any]],
    plugins: Sequence[Mapping[str, Any]],
) -> str:
    """The text of a profile.

    Parameters
    ----------
    comment
        The text of its first line.
    keys
        Keys before the tables: actions and switches.
    arguments
        Arguments by action.
    plugins
        The plugins, each with ``name``, ``tier``, ``enabled`` and ``arguments``.
    """
    lines = [f"# {comment}", *(f"{key} = {_written(value)}" for key, value in keys.items())]
    lines += [] if plugins else ["plugins = []"]
    for action, given in arguments.items():
        lines += ["", f"[action_arguments.{action}]", *(f"{key} = {_written(value)}" for key, value in given.items())]
    for plugin in plugins:
        lines += ["", "[[plugins]]", f"name = {_written(plugin['name'])}"]
        lines += [f"{key} = {_written(plugin[key])}" for key in _UNSAID if plugin[key] != _UNSAID[key]]
    return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    """A value in TOML; text is written as in JSON."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_written(key)} = {_written(inner)}" for key, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(value, ensure_ascii=False)
