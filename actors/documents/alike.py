"""Lists of documents that are alike but for their names, by kind: each kind is read once, and what differs is columns.

A fleet is described by a hundred thousand rows that differ in their name and place. The document's own description
checks them all: one row of each kind as a whole, and the keys that differ by their own types. Whenever that refuses
anything, or the rows are not plain mappings, the list is read row by row: so there is one description, and each offence
is found where it stands.

Lists inside rows, such as the tasks of podgroups, are read as one list (`read_together`): kinds are found in one long
list sooner than in many short ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Annotated, Any, Generic, TypeGuard, TypeVar, cast, get_args, overload

import msgspec
from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from actors.documents.model import Document, ListOf

Row = TypeVar("Row", bound=Document)
#: In place of a key that a row does not have.
_ABSENT: Any = object()
#: Below this number of rows nothing is gained.
_FEW = 4
_LISTS, _MAPPINGS = (list, tuple), {dict}
_encode = msgspec.msgpack.Encoder().encode
_new, _set = object.__new__, object.__setattr__


class Alike(Sequence[Row], Generic[Row]):
    """An immutable list of documents; as a field of a document, a list whose rows are ``Document.free`` to differ.

    Attributes
    ----------
    kinds
        A document of each kind, in the order of their first rows. Documents of a kind share everything but free keys.
    kind
        The kind of each row.
    """

    __slots__ = ("_columns", "_rows", "kind", "kinds")

    def __init__(self, kinds: tuple[Row, ...], kind: Sequence[int], columns: dict[str, list[Any]] | None) -> None:
        """A list with these free keys; without ``columns`` each row is a kind."""
        self.kinds, self.kind = kinds, kind
        self._columns: dict[str, list[Any]] = {} if columns is None else columns
        self._rows: tuple[Row, ...] | None = kinds if columns is None else None

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Alike[Row]:
        """Documents as a list in which each is of its own kind."""
        kinds = tuple(rows)
        return cls(kinds, range(len(kinds)), None)

    @classmethod
    def joined(cls, lists: Sequence[Alike[Row]]) -> Alike[Row]:
        """The documents of several lists, one after the other."""
        if len(lists) == 1:
            return lists[0]
        kinds, kind = list[Row](), list[int]()
        for one in lists:
            kind += [len(kinds) + at for at in one.kind]
            kinds += one.kinds
        keys = dict.fromkeys(key for one in lists for key in one.different)
        return cls(tuple(kinds), kind, {key: [value for one in lists for value in one.column(key)] for key in keys})

    def taken(self, rows: Sequence[int]) -> Alike[Row]:
        """The documents of some rows, in that order."""
        columns = {key: [column[row] for row in rows] for key, column in self._columns.items()}
        return self._with([self.kind[row] for row in rows], columns)

    def part(self, start: int, stop: int) -> Alike[Row]:
        """The documents of the rows from ``start`` to ``stop``."""
        return self._with(self.kind[start:stop], {key: column[start:stop] for key, column in self._columns.items()})

    def _with(self, kind: Sequence[int], columns: dict[str, list[Any]]) -> Alike[Row]:
        """Documents of these kinds, which come to stand in the order of their first rows, as always."""
        number = {one: at for at, one in enumerate(dict.fromkeys(kind))}
        return Alike(tuple([self.kinds[one] for one in number]), [number[one] for one in kind], columns)

    def column(self, key: str) -> list[Any]:
        """The values of a free key, by row."""
        if key not in self._columns:
            values = [getattr(one, key) for one in self.kinds]
            alike = len(values) == 1
            self._columns[key] = values * len(self) if alike else [values[kind] for kind in self.kind]
        return self._columns[key]

    @property
    def different(self) -> tuple[str, ...]:
        """The free keys in which documents of a kind differ, as far as they were asked for."""
        return tuple(self._columns)

    @property
    def times(self) -> list[int]:
        """How many rows each kind has."""
        found = [0] * len(self.kinds)
        for kind in self.kind:
            found[kind] += 1
        return found

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._made())

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        return self._made()[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self._made() == other._made()

    __hash__ = None  # type: ignore[assignment]  # documents have mappings

    def __repr__(self) -> str:
        return repr(self._made())

    def _made(self) -> tuple[Row, ...]:
        """All rows as documents; made when they are first asked for."""
        if self._rows is None:
            keys, columns = tuple(self._columns), self._columns.values()
            different = zip(*columns, strict=True) if columns else [()] * len(self)
            self._rows = tuple(
                _copy(self.kinds[kind], dict(zip(keys, values, strict=True)))
                for kind, values in zip(self.kind, different, strict=True)
            )
        return self._rows

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A list of the documents, read by kind; written as a list."""
        (item,) = get_args(source)
        rows = handler.generate_schema(ListOf[item])  # type: ignore[valid-type]
        return core_schema.no_info_wrap_validator_function(
            partial(_read, item),
            rows,
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda value, write: write(tuple(value)), schema=rows
            ),
        )


def read_together(key: str) -> Callable[[object], object]:
    """What is done before a list of rows is read that each have a list of the type `Alike` under ``key``."""

    def prepared(given: object) -> object:
        if not _are_mappings(given):
            return given
        together = _Together()
        return [row | {key: together.part(row[key])} if _are_mappings(row.get(key)) else row for row in given]

    return prepared


def _are_mappings(given: object) -> TypeGuard[Sequence[dict[str, Any]]]:
    return isinstance(given, list | tuple) and type(given) in _LISTS and {*map(type, given)} == _MAPPINGS


class _Together:
    """Many lists, which are read by kind as one when the first of them is read."""

    __slots__ = ("_read", "_rows")

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] | None = []
        self._read: Alike[Any] | None = None

    def part(self, rows: Sequence[dict[str, Any]]) -> _ReadTogether:
        """Add a list; the result stands for it, and says the same in messages."""
        part = _ReadTogether(rows)
        assert self._rows is not None
        part.together, part.start = self, len(self._rows)
        self._rows += rows
        return part

    def rows(self, item: type[Row], start: int, stop: int, check: Callable[[Any], Any]) -> Alike[Row] | None:
        """Some of the rows; None if they have to be read list by list."""
        if self._rows is not None:
            self._read, self._rows = _if_by_kind(item, self._rows, check), None
        return self._read.part(start, stop) if self._read is not None else None


class _ReadTogether(list[dict[str, Any]]):
    """One of many lists that are read together."""

    __slots__ = ("start", "together")
    together: _Together
    start: int


def _read(item: type[Row], given: Any, check: Callable[[Any], Any]) -> Alike[Row]:
    if isinstance(given, Alike):
        return given
    read: Alike[Row] | None = None
    if type(given) is _ReadTogether:
        read = given.together.rows(item, given.start, given.start + len(given), check)
        given = list(given) if read is None else given
    if read is None and _are_mappings(given) and len(given) >= _FEW:
        read = _if_by_kind(item, given, check)
    return Alike.of(check(given)) if read is None else read


def _if_by_kind(item: type[Row], rows: Sequence[dict[str, Any]], check: Callable[[Any], Any]) -> Alike[Row] | None:
    """None if they have to be read row by row, which says where a mistake is, or reads what cannot be compared."""
    try:
        return _by_kind(item, rows, check)
    except (ValidationError, TypeError, ValueError, OverflowError, RecursionError):
        return None


def _by_kind(item: type[Row], rows: Sequence[dict[str, Any]], check: Callable[[Any], Any]) -> Alike[Row]:
    forms = {form: _rest_of(form, item.free) for form in dict.fromkeys(map(tuple, rows))}
    keys = [key for key in item.free if any(key in form for form in forms)]
    columns = [[row.get(key, _ABSENT) for row in rows] for key in keys]
    # Whether a free key has a value is the same in a kind, for a document may ask that; whether it is there, forms say.
    gaps = [[one is None for one in column] for column in columns if type(None) in {*map(type, column)}]
    rests = [head + _encode(rest(row)) for row in rows for head, rest in (forms[tuple(row)],)]
    likes: list[Hashable] = [*zip(rests, *gaps, strict=True)] if gaps else [*rests]
    first = dict(zip(reversed(likes), reversed(rows), strict=True))
    number = {like: at for at, like in enumerate(dict.fromkeys(likes))}
    samples = [first[like] for like in number]
    checked = {key: _checked(item, key, column) for key, column in zip(keys, columns, strict=True)}
    return Alike(check(samples), [*map(number.__getitem__, likes)], checked)


def _rest_of(form: tuple[str, ...], free: Sequence[str]) -> tuple[bytes, Callable[[dict[str, Any]], object]]:
    """What tells rows with these keys from others, and gives the values of the keys that are not free."""
    rest = [key for key in form if key not in free]
    return _encode(form), itemgetter(*rest) if rest else lambda _: None


def _checked(item: type[Document], key: str, column: list[Any]) -> list[Any]:
    """The values of a key, each checked by its type; an absent one is the default."""
    present = column if type(_ABSENT) not in {*map(type, column)} else [one for one in column if one is not _ABSENT]
    values = _type_of(item, key).validate_python(present, strict=True)
    if len(values) == len(column):
        return values
    default, given = item.model_fields[key].get_default(), iter(values)
    return [default if one is _ABSENT else next(given) for one in column]


@lru_cache(maxsize=64)
def _type_of(item: type[Document], key: str) -> TypeAdapter[list[Any]]:
    """The check of a list of values of a key, as the document describes the key."""
    field = item.model_fields[key]
    one = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
    return cast("TypeAdapter[list[Any]]", TypeAdapter(list[one]))  # type: ignore[valid-type]


def _copy(document: Row, values: dict[str, Any]) -> Row:
    """The document with other values of some keys; it shares the rest, as ``model_copy`` does at thrice the time."""
    copy = _new(type(document))
    _set(copy, "__dict__", document.__dict__ | values)
    _set(copy, "__pydantic_fields_set__", document.__pydantic_fields_set__)
    _set(copy, "__pydantic_extra__", None)
    _set(copy, "__pydantic_private__", None)
    return copy
