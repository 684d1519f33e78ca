"""Kubernetes quantities as exact whole numbers: processors in millicores, memory in bytes, anything else in pieces.

The notation is that of Kubernetes (``500m``, ``2Gi``, ``1e3``, ``.5``), and bare numbers are allowed. As in Kubernetes,
fractions of a millicore or a byte are rounded up. A fraction of a device is refused, since devices are not shared.
"""

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from pipeline.cluster.arrays import UNLIMITED

Quantity: TypeAlias = int | float | str

#: The word for no bound, in keys that allow it.
NO_BOUND = "unlimited"

_NOTATION = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i))?"
)
_SUFFIXES = {
    **{suffix: Fraction(1000) ** power for power, suffix in zip((-3, -2, -1, *range(1, 7)), "numkMGTPE", strict=True)},
    **{f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
#: Suffixes of bytes, the largest first, and the first number that is not short with one.
_BINARY, _SHORT = [(1024**power, f"{letter}i") for power, letter in enumerate("KMGTPE", 1)][::-1], 100_000
#: Longer notations and larger exponents exceed the range in any case; refusing them first bounds the arithmetic.
_LONGEST, _LARGEST_EXPONENT = 64, 40


class QuantityRefused(ValueError):
    """A quantity that is not valid; the message says what was expected, without the path and the value."""


class QuantityTooLarge(QuantityRefused):
    """A quantity that is valid, and larger than anything that can be counted here."""


def in_bytes(resource: str) -> bool:
    """Whether a resource is counted in bytes."""
    return resource in ("memory", "storage", "ephemeral-storage") or resource.startswith("hugepages-")


# ``typed``, since the cache would otherwise answer for True with the result for 1.
@lru_cache(maxsize=1 << 16, typed=True)
def base_units(resource: str, quantity: Quantity, unlimited: bool = False) -> int:
    """A quantity of a resource in its base unit.

    Parameters
    ----------
    quantity
        As written.
    unlimited
        Whether the word ``unlimited`` is allowed; it is read as ``UNLIMITED``.

    Returns
    -------
    At least 0, and below ``UNLIMITED`` unless it was that word.

    Raises
    ------
    QuantityRefused
        If it is not a quantity, is negative or too large, or is a fraction of something that is counted in pieces.
    """
    if unlimited and quantity == NO_BOUND:
        return UNLIMITED
    amount = _amount(quantity)
    if amount is None:
        such = "expected a non-negative quantity such as 500m or 32Gi"
        raise QuantityRefused(f"{such}, or unlimited" if unlimited else such)
    if resource == "cpu":
        amount *= 1000
    elif not in_bytes(resource) and amount.denominator != 1:
        raise QuantityRefused(f"expected a whole number, since {resource} is counted in pieces")
    rounded = -(-amount.numerator // amount.denominator)
    if rounded >= UNLIMITED:
        raise QuantityTooLarge("expected a quantity below 2^60 base units")
    return rounded


def readable(resource: str, *amounts: float) -> list[str]:
    """Amounts of a resource as an operator writes them: what is counted in bytes with a binary suffix.

    They have three digits, or more where whole numbers or amounts that differ would not be told otherwise.
    """
    if not in_bytes(resource):
        return [f"{amount:.15g}" for amount in amounts]
    said: list[str] = []
    for digits in range(3, 18):
        said = [_with_suffix(amount, digits) for amount in amounts]
        if len(set(said)) == len(set(amounts)):
            break
    return said


def _with_suffix(amount: float, digits: int) -> str:
    """An amount of bytes with the largest suffix with which it is a short whole number, else with the largest."""
    for unit, suffix in _BINARY:
        if amount >= unit and amount % unit == 0 and amount < _SHORT * unit:
            return f"{amount / unit:.0f}{suffix}"
    unit, suffix = next(((unit, suffix) for unit, suffix in _BINARY if amount >= unit), (1, ""))
    return f"{amount / unit:.{max(digits, len(str(int(amount / unit))))}g}{suffix}"


def card_units(quantity: Quantity) -> int:
    """The capacity of a card, or a task's request for a part of one, in base units, rounded up.

    Raises
    ------
    QuantityRefused
        As ``base_units`` does.
    """
    return base_units("memory", quantity)


def _amount(quantity: object) -> Fraction | None:
    """The exact value of a quantity; None if it is negative or not a quantity."""
    if isinstance(quantity, bool) or not isinstance(quantity, int | float | str):
        return None
    if isinstance(quantity, int):
        return Fraction(quantity) if quantity >= 0 else None
    # The shortest decimal notation of a float is what was written: 0.1 is a tenth, as it is for Kubernetes.
    text = quantity if isinstance(quantity, str) else str(Decimal(repr(quantity)))
    found = _NOTATION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    exponent = int(found["exponent"] or 0)
    if abs(exponent) > _LARGEST_EXPONENT:
        return None
    amount = Fraction(Decimal(found["number"])) * Fraction(10) ** exponent * _SUFFIXES.get(found["suffix"], 1)
    return amount if amount >= 0 else None
