"""An object of another API, read field by field: what was asked for is noted, so that the rest can be told of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn

from actors.cluster_file.reader import ClusterFileRefused
from actors.documents.messages import key_path
from actors.documents.model import Location
from actors.documents.quantities import QuantityRefused, base_units

#: What says nothing, wherever it stands.
_EMPTY: tuple[object, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file.

    Attributes
    ----------
    document, inside
        Which document of the file, and where in it: the object itself, or an item of a list.
    group
        API group, without the version; "" is that of pods and nodes.
    """

    file: str
    document: int
    inside: Location
    group: str
    kind: str
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        about = self.body.get("metadata")
        about = about if isinstance(about, dict) else {}
        full = "/".join(str(about[key]) for key in ("namespace", "name") if about.get(key))
        return f"{self.kind} {full}" if full else self.kind


@dataclass(frozen=True, slots=True)
class Finding:
    """Something of an object that was not taken as it stands; ``left_out`` if a decision could depend on it."""

    manifest: Manifest
    where: Location
    told: str
    left_out: bool = True


@dataclass(slots=True)
class Fields:
    """A mapping of an object.

    Attributes
    ----------
    asked
        Keys that were asked for.
    inner
        The mappings in it that were read, by where they are.
    """

    manifest: Manifest
    data: Mapping[str, Any]
    where: Location
    findings: list[Finding]
    asked: set[str] = field(default_factory=set)
    inner: dict[tuple[int | str, ...], Fields] = field(default_factory=dict)

    def get(self, key: str) -> Any:
        """The value of a key, None if it has none."""
        self.asked.add(key)
        return self.data.get(key)

    def _typed(self, key: str, kind: type | tuple[type, ...], expected: str) -> Any:
        value = self.get(key)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            self.refuse(key, f"expected {expected}, found {json.dumps(value, default=str)[:60]}")
        return value

    def text(self, key: str, absent: str = "") -> str:
        """A text."""
        value = self._typed(key, str, "text")
        return absent if value is None else str(value)

    def whole(self, key: str, absent: int | None = None) -> int | None:
        """A whole number."""
        value = self._typed(key, int, "a whole number")
        return absent if value is None else int(value)

    def count(self, key: str, absent: int = 0) -> int:
        """A whole number of at least 0."""
        value = self.whole(key, absent) or 0
        if value < 0:
            self.refuse(key, f"expected at least 0, found {value}")
        return value

    def number(self, key: str, absent: float) -> float:
        """A number."""
        value = self._typed(key, (int, float), "a number")
        return absent if value is None else value

    def flag(self, key: str, absent: bool = False) -> bool:
        """A switch."""
        value = self._typed(key, bool, "true or false")
        return absent if value is None else bool(value)

    def inside(self, key: str) -> Fields:
        """A mapping, empty where there is none."""
        value = self._typed(key, dict, "a mapping")
        return self._enter(value or {}, (*self.where, key))

    def items(self, key: str) -> list[Fields]:
        """The mappings of a list."""
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
        """A mapping of texts, such as labels."""
        value = self._typed(key, dict, "a mapping") or {}
        for name, each in value.items():
            if not isinstance(each, str):
                self.refuse((key, name), f"expected text, found {json.dumps(each, default=str)[:60]}")
        return dict(value)

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        value = self._typed(key, list, "a list") or []
        for at, each in enumerate(value):
            if not isinstance(each, str):
                self.refuse((key, at), f"expected text, found {json.dumps(each, default=str)[:60]}")
        return list(value)

    def quantities(self, key: str) -> dict[str, Any]:
        """Amounts by resource, as written."""
        value = self._typed(key, dict, "a mapping") or {}
        for resource in value:
            self.units(value, key, resource)
        return dict(value)

    def amounts(self, key: str) -> dict[str, int]:
        """Amounts by resource, in base units."""
        value = self._typed(key, dict, "a mapping") or {}
        return {resource: self.units(value, key, resource) for resource in value}

    def units(self, given: Mapping[str, Any], key: str, resource: str) -> int:
        """One amount in base units."""
        amount = given[resource]
        try:
            return base_units(resource, amount if isinstance(amount, int | float | str) else "")
        except QuantityRefused as refusal:
            self.refuse((key, resource), f"{refusal}, found {json.dumps(amount, default=str)[:60]}")

    def time(self, key: str) -> float | None:
        """Seconds since the epoch, of a time as Kubernetes writes it."""
        text = self.text(key)
        if not text:
            return None
        try:
            return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
        except ValueError:
            self.refuse(key, f"expected a time such as 2026-01-31T12:00:00Z, found {text[:60]!r}")

    def skip(self, *keys: str) -> None:
        """Note keys as asked for."""
        self.asked.update(keys)

    def leave_out(self, key: str | Location, told: str) -> None:
        """Tell of a field without a place."""
        self.findings.append(Finding(self.manifest, self._at(key), told))

    def remark(self, key: str | Location, told: str) -> None:
        """Tell of a field that was read otherwise than it is written."""
        self.findings.append(Finding(self.manifest, self._at(key), told, left_out=False))

    def refuse(self, key: str | Location, told: str) -> NoReturn:
        """Refuse for the sake of a field."""
        raise FieldRefused(Finding(self.manifest, self._at(key), told))

    def _at(self, key: str | Location) -> Location:
        return (*self.where, *((key,) if isinstance(key, str) else key))

    def unread(self) -> Iterator[tuple[Location, Fields, str]]:
        """Where keys that say something were not asked for, and the mapping and key."""
        for key, value in self.data.items():
            if key not in self.asked and value not in _EMPTY:
                yield (*self.where, key), self, key
        for entered in self.inner.values():
            yield from entered.unread()


class FieldRefused(ClusterFileRefused):
    """A field that makes no sense; a reader that knows the lines of the file adds them."""

    def __init__(self, finding: Finding) -> None:
        manifest = finding.manifest
        super().__init__(f"{manifest.file}: {manifest.name}: {key_path(finding.where)}: {finding.told}")
        self.finding = finding
