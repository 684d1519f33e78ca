"""``clearway get`` and ``clearway export``: what there is in a live fleet, and all of it as a cluster file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from actors.cli.live.reading import reading
from actors.cli.live.tables import COLUMNS, OF_STATE, OF_STREAMS, Row, table
from actors.configuration.settings import Settings
from actors.documents.messages import on_one_line
from actors.documents.results import say, write_out
from actors.ingestion.exported import cluster_document
from actors.ingestion.spectating import Onlooker
from actors.search.pending_reasons import waiting

KINDS = (*OF_STATE, *OF_STREAMS)
FORMATS = ("table", "json", "yaml")


def run(settings: Settings, kind: str, *, output: str, count: int | None, name: str | None) -> int:
    """Print rows of one kind, at most ``count`` (None: all), with this ``name`` (None: any); 1 if there is none.

    Raises
    ------
    NotListed
        If the kind needs the live state, and there is none.
    SettingsRefused
        If no broker is named.
    """
    with reading(settings, "get") as (bus, now_s):
        if kind in OF_STATE:
            state = Onlooker(settings, bus, now_s=now_s).state()
            found = OF_STATE[kind](state, waiting(bus))
        else:
            found = OF_STREAMS[kind](bus)
        rows = list(islice((row for row in found if name is None or name in _names(row)), count))
    say(_said(kind, rows, output))
    return 0 if rows else 1


def export(settings: Settings, out: Path | None) -> int:
    """Write the live state as a cluster file, to standard output if ``out`` is None.

    Raises
    ------
    NotListed, SettingsRefused
        As `run`.
    """
    with reading(settings, "export") as (bus, now_s):
        document = cluster_document(Onlooker(settings, bus, now_s=now_s).state(), now_s())
    write_out(_yaml(document), out)
    return 0


def _names(row: Row) -> set[str]:
    """What a row is called, also without its namespace."""
    known = [str(row[key]) for key in ("name", "podgroup", "owner", "plan_id") if row.get(key) is not None]
    return {*known, *(name.rpartition("/")[2] for name in known)}


def _said(kind: str, rows: Sequence[Row], output: str) -> str:
    if output == "json":
        return json.dumps(rows, ensure_ascii=False) + "\n"
    if output == "yaml":
        return _yaml(list(rows))
    return "".join(f"{on_one_line(line)}\n" for line in table(COLUMNS[kind], rows))


def _yaml(data: Any) -> str:
    text: str = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=120)
    return text
