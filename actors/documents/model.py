"""What all documents share: they are immutable, strict about types and keys, and name the key of each offence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from actors.documents.quantities import Quantity, QuantityRefused, base_units, card_units

Item = TypeVar("Item")
#: A path into plain data: keys of mappings, positions of lists.
Location = tuple[int | str, ...]
#: Every resource is a column of all nodes and shapes, so one message must not add thousands.
MOST_KEYS, MOST_RESOURCES = 1_000, 128
#: How many offences are reported at once. People read the first; a million wrong values must not make a million.
_TOLD = 8


class Document(BaseModel):
    """Base class of documents. Validate with ``extra="ignore"`` to ignore unknown keys, as on the wire."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    #: Keys in which documents in a list may differ and still be alike, see ``alike``. No check of a document may ask
    #: more of the value of such a key than its type does, and whether there is one.
    free: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class Offence:
    """One mistake: its path, a phrase that begins with ``expected``, and the value that was found."""

    where: Location
    expected: str
    found: Any


def offended(offences: Iterable[Offence]) -> None:
    """Raise the first few offences, if there are any, in a form that pydantic reports at their keys."""
    # Pydantic would read braces in the phrase as a template, so the phrase goes into the context.
    errors = [
        InitErrorDetails(
            type=PydanticCustomError("offence", "{expected}", {"expected": offence.expected}),
            loc=offence.where,
            input=offence.found,
        )
        for offence in islice(offences, _TOLD)
    ]
    if errors:
        raise ValidationError.from_exception_data("document", errors)


def _quantities(values: object, unlimited: bool) -> object:
    """Check each amount by the unit of its resource; pydantic refuses anything but a mapping."""
    if not isinstance(values, dict):
        return values
    with_proper_keys(values, MOST_RESOURCES)
    for resource, amount in values.items():
        try:
            base_units(str(resource), amount if isinstance(amount, int | float | str) else "", unlimited)
        except QuantityRefused as refusal:
            offended([Offence((str(resource),), str(refusal), amount)])
    return values


def with_proper_keys(values: object, most: int = MOST_KEYS) -> object:
    """Check the keys of a mapping: how many there are, and that none is empty."""
    if isinstance(values, dict) and len(values) > most:
        offended([Offence((), f"expected at most {most} keys", len(values))])
    if isinstance(values, dict) and "" in values:
        offended([Offence((), "expected keys that are not empty", "")])
    return values


def _card_quantity(given: object) -> object:
    """Check the amount of a card. Pydantic's errors for a union would name its branches."""
    try:
        card_units(given if isinstance(given, int | float | str) else "")
    except QuantityRefused as refusal:
        offended([Offence((), str(refusal), given)])
    return given


#: A tuple that may be written as a list, which strict models refuse; its items are still checked strictly.
ListOf = Annotated[tuple[Item, ...], Field(strict=False, fail_fast=True)]
Name = Annotated[str, Field(min_length=1, max_length=512)]
#: A name without a slash, since names are joined by slashes.
Segment = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[^/]+$")]
Keyed = Annotated[dict[str, Item], BeforeValidator(with_proper_keys)]
Labels = Keyed[str]
#: What the schema says about a quantity; what a text may hold is on the page of the protocol.
_NOT_NEGATIVE = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}
_BY_RESOURCE = WithJsonSchema({"type": "object", "additionalProperties": _NOT_NEGATIVE})
Quantities = Annotated[
    dict[str, Quantity], BeforeValidator(lambda values: _quantities(values, unlimited=False)), _BY_RESOURCE
]
Bounds = Annotated[
    dict[str, Quantity], BeforeValidator(lambda values: _quantities(values, unlimited=True)), _BY_RESOURCE
]
CardQuantity = Annotated[Quantity, BeforeValidator(_card_quantity), WithJsonSchema(_NOT_NEGATIVE)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
#: More cycles than are of use, so that a slip of the hand does not run for days.
MOST_CYCLES = 100_000
#: The first second of the year 1 and of the year 10000: beyond them no date can be told.
FIRST_MOMENT, END_OF_TIME = -62_135_596_800, 253_402_300_800
#: Seconds since the epoch. Milliseconds, a common mistake, lie beyond the bound.
Moment = Annotated[float, Field(ge=FIRST_MOMENT, lt=END_OF_TIME, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
#: How long something lasts, in seconds; 30 years at most, so that it ends at a moment that can be told.
LONGEST_S = 10**9
Lasting = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
#: How many lives a task had before. There is room to count on, whatever a fleet begins with.
Life = Annotated[int, Field(ge=0, lt=2**62)]
Priority = Annotated[int, Field(ge=-(2**31), lt=2**31)]


def _distinct(values: tuple[Item, ...]) -> tuple[Item, ...]:
    seen: set[Item] = set()
    for at, value in enumerate(values):
        if value in seen:
            offended([Offence((at,), "expected each name once", value)])
        seen.add(value)
    return values


def _some(values: tuple[Item, ...]) -> tuple[Item, ...]:
    # Pydantic's minimum length would also report a list whose only item is wrong.
    offended([Offence((), "expected a list that is not empty", [])] if not values else [])
    return values


Distinct = Annotated[tuple[Item, ...], Field(strict=False, fail_fast=True), AfterValidator(_distinct)]
Several = Annotated[tuple[Item, ...], Field(strict=False, fail_fast=True), AfterValidator(_some)]
