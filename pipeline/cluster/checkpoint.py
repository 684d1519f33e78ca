"""A snapshot as bytes and back: the raw columns behind a small header, each on a 64-byte boundary.

Neither way copies anything: what is encoded are the columns themselves, one after the other for the writer; what is
decoded are read-only views of the bytes. The header is JSON (sizes, names and the vocabulary), so that nothing in them
can run; columns are little-endian, as on every machine that we run on.
"""

import json
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pipeline.cluster.counted.budgets import Budgets
from pipeline.cluster.counted.recent_evictions import RecentEvictions
from pipeline.cluster.snapshot import Snapshot
from pipeline.cluster.tables import Nodes, Podgroups, Queues, Roles, Shapes, Subgroups, Tasks
from pipeline.cluster.topology import Topology
from pipeline.cluster.vocabulary import Vocabulary
from pipeline.errors import StateRefused

#: Grows with every change of the columns: a checkpoint of another schema is not read.
SCHEMA = "clearway-snapshot-8"
_MAGIC = b"CLEARWAY"
_ALIGNMENT = 64
_TABLES: dict[str, type[Any]] = {
    "nodes": Nodes, "topology": Topology, "shapes": Shapes, "queues": Queues, "podgroups": Podgroups, "roles": Roles,
    "subgroups": Subgroups, "tasks": Tasks, "budgets": Budgets, "recent": RecentEvictions,
}  # fmt: skip
_NUMBERS = ("revision", "epoch", "decided")
_DTYPES = frozenset({"|b1", "|u1", "<i4", "<i8", "<f8"})


def encode(snapshot: Snapshot) -> list[bytes | memoryview]:
    """The snapshot as buffers whose bytes follow one another: the same snapshot gives the same bytes."""
    columns = []
    listed: list[list[Any]] = []
    for table in _TABLES:
        for name in _columns(table):
            column = np.ascontiguousarray(getattr(getattr(snapshot, table), name))
            columns.append(column)
            listed.append([table, name, column.dtype.str, list(column.shape)])
    said = {
        "schema": SCHEMA,
        **{name: getattr(snapshot, name) for name in _NUMBERS},
        "levels": snapshot.topology.levels,
        "vocabulary": _plain(snapshot.vocabulary),
        "columns": listed,
    }
    header = json.dumps(said, separators=(",", ":"), sort_keys=True).encode()
    pieces: list[bytes | memoryview] = [_MAGIC, len(header).to_bytes(8, "little"), header]
    pieces.append(bytes(-sum(map(len, pieces)) % _ALIGNMENT))
    for column in columns:
        pieces += [column.reshape(-1).view(np.uint8).data, bytes(-column.nbytes % _ALIGNMENT)]
    return pieces


def decode(data: bytes | memoryview) -> Snapshot:
    """The snapshot that was encoded; its arrays are read-only views of ``data``.

    Raises
    ------
    StateRefused
        For bytes that are not a snapshot of this schema, or are cut off.
    """
    view = memoryview(data).toreadonly()
    said, start = _header(view)
    shapes = [(str(dtype), tuple(int(n) for n in shape)) for _, _, dtype, shape in said["columns"]]
    if any(dtype not in _DTYPES or any(n < 0 for n in shape) for dtype, shape in shapes):
        raise StateRefused("checkpoint: expected columns of known types and sizes, found others")
    sizes = [np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)) for dtype, shape in shapes]
    places, end = _places(start, sizes)
    if end != len(view):
        raise StateRefused(f"checkpoint: expected {end} bytes, found {len(view)}")
    held: dict[str, dict[str, NDArray[Any]]] = {table: {} for table in _TABLES}
    for (table, name, _, _), (dtype, shape), place in zip(said["columns"], shapes, places, strict=True):
        count = int(np.prod(shape, dtype=np.int64))
        held[table][name] = np.frombuffer(view, dtype, count, place).reshape(shape)
    wanted = {table: set(_columns(table)) for table in _TABLES}
    if {table: set(columns) for table, columns in held.items()} != wanted:
        raise StateRefused("checkpoint: expected every column of every table once, found another set")
    parts: dict[str, Any] = {
        table: kind(**held[table], **({"levels": int(said["levels"])} if kind is Topology else {}))
        for table, kind in _TABLES.items()
    }
    parts.update({name: int(said[name]) for name in _NUMBERS}, vocabulary=_made(Vocabulary, said["vocabulary"]))
    return Snapshot(**parts)


def _header(view: memoryview) -> tuple[dict[str, Any], int]:
    head = len(_MAGIC) + 8
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        raise StateRefused(f"checkpoint: expected {_MAGIC!r} at the start, found {bytes(view[: len(_MAGIC)])!r}")
    size = int.from_bytes(view[len(_MAGIC) : head], "little")
    if head + size > len(view):
        raise StateRefused(f"checkpoint: expected a header of {size} bytes, found {len(view) - head}")
    said = json.loads(bytes(view[head : head + size]))
    if said.get("schema") != SCHEMA:
        raise StateRefused(f"checkpoint: expected schema {SCHEMA}, found {said.get('schema')!r}")
    return said, _aligned(head + size)


def _columns(table: str) -> list[str]:
    return [field.name for field in fields(_TABLES[table]) if not (table == "topology" and field.name == "levels")]


def _aligned(at: int) -> int:
    return -(-at // _ALIGNMENT) * _ALIGNMENT


def _places(start: int, sizes: list[int]) -> tuple[list[int], int]:
    """Where each column begins, and where the buffer ends."""
    places = []
    for size in sizes:
        places.append(start)
        start = _aligned(start + size)
    return places, start


def _plain(value: Any) -> Any:
    """Dataclasses and tuples as nested lists, in the order of the fields."""
    if hasattr(value, "__dataclass_fields__"):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value


def _made(kind: Any, plain: Any) -> Any:
    """The value of a type that ``_plain`` turned into lists."""
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(*(_made(one, value) for one, value in zip(_types_of(kind), plain, strict=True)))
    if get_origin(kind) is not tuple or not plain or not isinstance(plain[0], list):
        return tuple(plain) if isinstance(plain, list) else plain
    return tuple(_made(get_args(kind)[0], value) for value in plain)


@cache
def _types_of(kind: type[Any]) -> tuple[Any, ...]:
    types = get_type_hints(kind)
    return tuple(types[field.name] for field in fields(kind))
