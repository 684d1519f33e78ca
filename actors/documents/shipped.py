"""The data that comes with the program: beside the sources in a checkout, inside the package where it was installed."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = (_PACKAGE.parent / "config", _PACKAGE / "config")

#: The folder of profiles, examples and defaults.
CONFIG = next((folder for folder in _PLACES if (folder / "profiles").is_dir()), _PLACES[-1])
