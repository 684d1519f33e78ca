"""Requirements on labels, as Kubernetes states them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Operators that labels alone answer; node affinity also compares numbers.
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels meet a requirement with ``key``, ``operator`` and ``values``; a comparison of numbers is not made.

    ``NotIn`` also holds where the label is absent.
    """
    value, values = labels.get(requirement["key"]), requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return True
