"""The table ``config/manifests.toml``: the labels, annotations and fields by which schedulers mark pods and queues."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from actors.configuration.settings import SettingsRefused
from actors.documents.bounded_files import text_of, toml_of
from actors.documents.messages import one_sentence
from actors.documents.model import Document, ListOf, Offence, offended
from actors.documents.shipped import CONFIG
from actors.imports.fields import Fields

FILE = CONFIG / "manifests.toml"
Meaning = Literal[
    "podgroup", "subgroup", "role", "queue", "priority_class", "min_available", "gang_group", "gather", "index",
    "required_level", "preferred_level", "preemptible", "spared", "cooldown", "parent", "lends", "shares", "kept",
    "namespaces", "tree", "tree_root", "tree_total", "match_policy", "wait", "near", "nothing", "left_out", "held_back",
]  # fmt: skip


class SchedulerDocument(Document):
    """A scheduler; ``together`` says how many pods of one owner must run if nothing marks a gang."""

    names: ListOf[str]
    default_queue: str
    together: Literal["one", "all"] | None = None
    not_preemptible_from: int | None = None
    usual_priority: int | None = None
    counted_as_others: ListOf[str] = ()


class MarkDocument(Document):
    """One mark: the kind of object that bears it, its place in the object, and its meaning."""

    scheduler: str
    on: Literal["pod", "podgroup", "queue", "any"]
    label: str | None = None
    annotation: str | None = None
    fields: ListOf[str] = ()
    means: Meaning

    @model_validator(mode="after")
    def _one_place(self) -> MarkDocument:
        if sum(map(bool, (self.label, self.annotation, self.fields))) != 1:
            offended([Offence((), "expected one of label, annotation and fields", None)])
        return self

    @property
    def place(self) -> tuple[str, ...]:
        """The path of the mark in an object."""
        if self.label is not None:
            return ("metadata", "labels", self.label)
        if self.annotation is not None:
            return ("metadata", "annotations", self.annotation)
        return tuple(self.fields[0].split("."))


class OwnersDocument(Document):
    """Owners of pods."""

    gone_when_evicted: ListOf[str]


class UnknownDocument(Document):
    """Domains of labels and annotations that belong to schedulers."""

    domains: ListOf[str]


class PassedOverDocument(Document):
    """Kinds and fields that decide nothing."""

    kinds: ListOf[str]
    fields: dict[str, ListOf[str]] = Field(default_factory=dict)


class MarksDocument(Document):
    """The whole table."""

    schedulers: dict[str, SchedulerDocument]
    marks: ListOf[MarkDocument]
    owners: OwnersDocument
    unknown: UnknownDocument
    passed_over: PassedOverDocument


@dataclass(frozen=True, slots=True)
class Marked:
    """The value of a mark on an object, the scheduler that defines the mark, and the object."""

    value: Any
    scheduler: str
    mark: MarkDocument
    about: Fields

    def leave_out(self, told: str) -> None:
        """Report that the mark has no counterpart here."""
        self.about.leave_out(self.mark.place, told)


@lru_cache(maxsize=1)
def table() -> MarksDocument:
    """The table.

    Raises
    ------
    SettingsRefused
        If the file cannot be read or is not a valid table.
    """
    try:
        return MarksDocument.model_validate(toml_of(text_of(FILE)))
    except ValidationError as error:
        raise SettingsRefused(f"{FILE.name}: {one_sentence(error, model=MarksDocument)}") from error
    except (OSError, ValueError) as error:
        raise SettingsRefused(f"{FILE.name}: expected the table of marks, found: {error}") from error


def find(means: Meaning, on: str, objects: Sequence[Fields]) -> Marked | None:
    """The first mark of a meaning, in the order of the table, on the first object that bears one; None if none does."""
    for about in objects:
        for mark in _marks(means, on):
            value = _value(mark, about)
            if value not in (None, ""):
                return Marked(value, mark.scheduler, mark, about)
    return None


@lru_cache(maxsize=256)
def _marks(means: Meaning, on: str) -> tuple[MarkDocument, ...]:
    return tuple(mark for mark in table().marks if mark.means == means and mark.on in (on, "any"))


def _value(mark: MarkDocument, about: Fields) -> Any:
    if mark.fields:
        parts = [_dotted(about.data, path) for path in mark.fields]
        return "-".join(str(part) for part in parts if part) if parts[0] else None
    metadata = about.data.get("metadata")
    given = metadata.get(mark.place[1]) if isinstance(metadata, Mapping) else None
    return given.get(mark.place[2]) if isinstance(given, Mapping) else None


def _dotted(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def report_unknown(about: Fields, on: str) -> None:
    """Report labels and annotations of schedulers that have no row in the table or a row that says so."""
    metadata = about.data.get("metadata")
    for part in ("labels", "annotations"):
        found = metadata.get(part) if isinstance(metadata, Mapping) else None
        given: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        for key in given:
            means = _known(on).get((part, str(key)))
            if means in ("left_out", "held_back") or (means is None and _scheduler_s(str(key))):
                then = "; while it waits the pod is held back" if means == "held_back" else ""
                about.leave_out(("metadata", part, str(key)), f"{given[key]!r} has no counterpart here{then}")


@lru_cache(maxsize=8)
def _known(on: str) -> dict[tuple[str, str], str]:
    own = [mark for mark in table().marks if mark.place[0] == "metadata" and mark.on in (on, "any")]
    return {(mark.place[1], mark.place[2]): mark.means for mark in own}


def _scheduler_s(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == known or domain.endswith(f".{known}") for known in table().unknown.domains)


@lru_cache(maxsize=64)
def passed_over(kind: str) -> frozenset[str]:
    """Paths of the fields of a kind that decide nothing."""
    fields = table().passed_over.fields
    return frozenset((*fields.get("*", ()), *fields.get(kind, ())))


class Rest:
    """The fields of an object that were not read. They are reported last, since other objects may ask it for marks."""

    def __init__(self, about: Fields, on: str) -> None:
        self.about, self.on = about, on

    def respelled(self) -> dict[str, Any] | None:
        """The object with the case of its keys corrected; None if no key differs from a known one in case alone.

        Each correction is reported.
        """
        wrong = []
        for where, fields, key in self.about.unread():
            meant = [asked for asked in fields.asked if asked.lower() == key.lower() and asked not in fields.data]
            if len(meant) == 1:
                wrong.append((where, meant[0]))
        if not wrong:
            return None
        body = copy.deepcopy(dict(self.about.data))
        for where, right in wrong:
            inside: Any = body
            for step in where[:-1]:
                inside = inside[step]
            inside[right] = inside.pop(where[-1])
            self.about.remark(where, f"read as {right}")
        return body

    def tell(self) -> None:
        """Report marks without a counterpart, and unread fields that could change a decision."""
        report_unknown(self.about, self.on)
        kind = self.about.manifest.kind
        for where, _, _ in self.about.unread():
            steps = "".join("[]" if isinstance(step, int) else f".{step}" for step in where)
            path = steps[1:].replace("initContainers[]", "containers[]")
            within, _, rest = path.rpartition("template.")
            # A template holds a pod or a job, so their fields decide nothing there either.
            if not _is_over(kind, path) and not (within and (_is_over("Pod", rest) or _is_over("Job", rest))):
                self.about.leave_out(where, "nothing here reads this")


def _is_over(kind: str, path: str) -> bool:
    over = passed_over(kind)
    return path in over or any(path.startswith((f"{known}.", f"{known}[")) for known in over)
