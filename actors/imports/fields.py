"""An object of another API, read field by field. It notes which keys were read, so that the others can be reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.documents.durations import A_TIME, moment_of
from actors.documents.messages import key_path, shown
from actors.documents.model import Location
from actors.documents.quantities import NO_BOUND, QuantityRefused, QuantityTooLarge, base_units
from pipeline.cluster.arrays import UNLIMITED

Source = TypeVar("Source")
#: Values that say nothing in any field.
_EMPTY: tuple[object, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file.

    Attributes
    ----------
    document, inside
        Index of the document in the file; path of the object in that document, empty unless it is an item of a list.
    group
        API group, without the version; "" for the core group (pods, nodes).
    """

    file: str
    document: int
    inside: Location
    group: str
    kind: str
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Kind, namespace and name, as a sentence names the object."""
        return name_of({**self.body, "kind": self.kind})


def name_of(body: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object, as far as it states them."""
    about = body.get("metadata")
    about = about if isinstance(about, dict) else {}
    full = "/".join(str(about[key]) for key in ("namespace", "name") if about.get(key))
    return f"{body.get('kind')} {full}" if full else str(body.get("kind"))


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of an object that was not taken as it is written; ``left_out`` if a decision could depend on it."""

    manifest: Manifest
    where: Location
    told: str
    left_out: bool = True


@dataclass(slots=True)
class Fields:
    """A mapping inside an object.

    Attributes
    ----------
    data
        The mapping, as plain data.
    where
        Its path in the object.
    findings
        Where remarks about the object are collected.
    asked
        Keys that a reader asked for.
    inner
        Mappings inside it that were read, by path.
    """

    manifest: Manifest
    data: Mapping[str, Any]
    where: Location
    findings: list[Finding]
    asked: set[str] = field(default_factory=set)
    inner: dict[tuple[int | str, ...], Fields] = field(default_factory=dict)

    def get(self, key: str) -> Any:
        """The value of a key; None if the key is absent."""
        self.asked.add(key)
        return self.data.get(key)

    def _typed(self, key: str, kind: type | tuple[type, ...], expected: str) -> Any:
        value = self.get(key)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            self.refuse(key, f"expected {expected}, found {shown(value)}")
        return value

    def text(self, key: str, absent: str = "") -> str:
        """The text under a key; ``absent`` if there is none.

        Raises
        ------
        FieldRefused
            If the value is of another type. The methods below refuse in the same way.
        """
        value = self._typed(key, str, "text")
        return absent if value is None else str(value)

    def whole(self, key: str, absent: int | None = None) -> int | None:
        """The whole number under a key."""
        value = self._typed(key, int, "a whole number")
        return absent if value is None else int(value)

    def count(self, key: str, absent: int = 0) -> int:
        """The whole number under a key, at least 0."""
        value = self.whole(key, absent) or 0
        if value < 0:
            self.refuse(key, f"expected at least 0, found {value}")
        return value

    def number(self, key: str, absent: float) -> float:
        """The number under a key."""
        value = self._typed(key, (int, float), "a number")
        return absent if value is None else value

    def flag(self, key: str, absent: bool = False) -> bool:
        """The switch under a key."""
        value = self._typed(key, bool, "true or false")
        return absent if value is None else bool(value)

    def inside(self, key: str) -> Fields:
        """The mapping under a key; an empty one if there is none."""
        value = self._typed(key, dict, "a mapping")
        return self._enter(value or {}, (*self.where, key))

    def items(self, key: str) -> list[Fields]:
        """The mappings of the list under a key."""
        found = self._typed(key, list, "a list") or []
        for at, each in enumerate(found):
            if not isinstance(each, dict):
                self.refuse((key, at), "expected a mapping")
        return [self._enter(each, (*self.where, key, at)) for at, each in enumerate(found)]

    def _enter(self, data: Mapping[str, Any], where: Location) -> Fields:
        if where not in self.inner:
            self.inner[where] = Fields(self.manifest, data, where, self.findings)
        return self.inner[where]

    def words(self, key: str) -> dict[str, str]:
        """The mapping of texts under a key, such as labels."""
        value = self._typed(key, dict, "a mapping") or {}
        for name, each in value.items():
            if not isinstance(each, str):
                self.refuse((key, name), f"expected text, found {shown(each)}")
        return dict(value)

    def texts(self, key: str) -> list[str]:
        """The list of texts under a key."""
        value = self._typed(key, list, "a list") or []
        for at, each in enumerate(value):
            if not isinstance(each, str):
                self.refuse((key, at), f"expected text, found {shown(each)}")
        return list(value)

    def quantities(self, key: str, counts: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
        """Amounts by resource, as written, of the resources that count."""
        value = self._typed(key, dict, "a mapping") or {}
        found = {resource: amount for resource, amount in value.items() if counts(resource)}
        for resource in found:
            self.units(found, key, resource)
        return found

    def bounds(self, key: str) -> dict[str, Any]:
        """Amounts by resource, as written; one beyond our range bounds nothing."""
        found = dict(self._typed(key, dict, "a mapping") or {})
        for resource, amount in found.items():
            if self.units(found, key, resource, capped=True) == UNLIMITED:
                self.remark((key, resource), f"{amount} is more than any cluster has, so it is no bound")
                found[resource] = NO_BOUND
        return found

    def amounts(self, key: str) -> dict[str, int]:
        """Amounts by resource, in base units."""
        value = self._typed(key, dict, "a mapping") or {}
        return {resource: self.units(value, key, resource) for resource in value}

    def units(self, given: Mapping[str, Any], key: str, resource: str, *, capped: bool = False) -> int:
        """One amount in base units; with ``capped`` one beyond our range is ``UNLIMITED``."""
        amount = given[resource]
        try:
            return base_units(resource, amount if isinstance(amount, int | float | str) else "")
        except QuantityRefused as refusal:
            if capped and isinstance(refusal, QuantityTooLarge):
                return UNLIMITED
            self.refuse((key, resource), f"{refusal}, found {shown(amount)}")

    def time(self, key: str) -> float | None:
        """The time under a key, in seconds since the epoch; None if there is none. Without an offset it is in UTC."""
        text = self.text(key)
        if not text:
            return None
        moment = moment_of(text)
        if moment is None:
            self.refuse(key, f"expected {A_TIME}, found {shown(text)}")
        return moment

    def skip(self, *keys: str) -> None:
        """Count keys as read, because nothing depends on them."""
        self.asked.update(keys)

    def leave_out(self, key: str | Location, told: str) -> None:
        """Report a field that has no counterpart here and could change a decision."""
        self.findings.append(Finding(self.manifest, self._at(key), told))

    def remark(self, key: str | Location, told: str) -> None:
        """Report a field that was read in another way than it is written."""
        self.findings.append(Finding(self.manifest, self._at(key), told, left_out=False))

    def refuse(self, key: str | Location, told: str) -> NoReturn:
        """Refuse the object because of one of its fields."""
        raise FieldRefused(Finding(self.manifest, self._at(key), told))

    def _at(self, key: str | Location) -> Location:
        return (*self.where, *((key,) if isinstance(key, str) else key))

    def unread(self) -> Iterator[tuple[Location, Fields, str]]:
        """Path, mapping and key of each key that has a value and was not read."""
        for key, value in self.data.items():
            if key not in self.asked and value not in _EMPTY:
                yield (*self.where, key), self, key
        for entered in self.inner.values():
            yield from entered.unread()


def deepest(sources: Mapping[int, Source], document: Mapping[str, Any], where: Location) -> Source | None:
    """What is known of the innermost part of a document on a path, by the identity of the part; None if of none."""
    found: Source | None = None
    inside: Any = document
    for step in where:
        try:
            inside = inside[step]
        except (IndexError, KeyError, TypeError):
            break
        found = sources.get(id(inside), found)
    return found


class FieldRefused(ClusterFileRefused):
    """A field whose value makes no sense. A caller that knows the lines of the file adds the line."""

    def __init__(self, finding: Finding) -> None:
        manifest = finding.manifest
        told = f"{manifest.file}: {manifest.name}: {key_path(finding.where)}: {finding.told}"
        super().__init__(told, finding.where)
        self.finding = finding
