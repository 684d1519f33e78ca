"""The program ``clearway``: runs a command, and turns a refusal into one sentence.

Exit codes: 0 done; 1 done, but something is wrong with the outcome; 2 refused, with one sentence on standard error.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
from typing import NoReturn

from actors.cli.commands import app
from actors.documents.results import ReaderLeft, complain, drop_unwritten

#: Exit code if standard output has no reader any more, which is no error: the code that a shell reports for SIGPIPE.
_READER_LEFT = 128 + signal.SIGPIPE
#: Exit code for Ctrl-C.
_INTERRUPTED = 128 + signal.SIGINT
_REFUSED = 2


def _refuse(sentence: str) -> NoReturn:
    complain([" ".join(sentence.split())])
    drop_unwritten()
    sys.exit(_REFUSED)


def _writes_any_text() -> None:
    """Have standard output take every character: as UTF-8 as files are, or escaped where a terminal has no such one."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def _refusals() -> tuple[type[Exception], ...]:
    """Exceptions that end a command with one sentence. Only loaded modules matter: no others can have raised any."""
    homes = {
        "actors.configuration.settings": ("SettingsRefused",),
        "actors.cluster_file.plain_data": ("ClusterFileRefused",),
        "actors.documents.bounded_files": ("FileRefused",),
        "actors.observability.health_server": ("HealthRefused",),
        "actors.ingestion.spectating": ("NotListed",),
        "actors.broker.bus": ("BrokerRefused", "BrokerUnreachable"),
        "actors.broker.embedded_broker": ("BrokerNotStarted",),
        "actors.ray_runtime.cluster": ("RayRefused",),
        "pipeline.errors": ("Refused",),
    }
    loaded = ((sys.modules[home], names) for home, names in homes.items() if home in sys.modules)
    return tuple(getattr(module, name) for module, names in loaded for name in names)


def _interrupted(error: BaseException | None) -> bool:
    """Whether an error comes from Ctrl-C. Compiled code then ends with a ``SystemError``, caused by it."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


def main() -> None:
    """Run the command; a refusal is a sentence and exit code 2, never a traceback."""
    # Before anything imports Ray: its `uv run` hook would build a second environment for every worker.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    # No model has a plugin, and to look for some among all that is installed takes longer than to read a small file.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _writes_any_text()
    try:
        app()
    except ReaderLeft:
        drop_unwritten()
        sys.exit(_READER_LEFT)
    except Exception as error:
        if _interrupted(error):
            sys.exit(_INTERRUPTED)
        if isinstance(error, _refusals()):
            _refuse(str(error))
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            _refuse(f"expected room to write, found: {error}")
        raise
    finally:
        gc.freeze()  # the process ends: looking for garbage among all that was imported would take half a second
