"""What a requirement on labels means, of a node's or of a task's, and which tasks a term of anti-affinity selects.

Both as Kubernetes evaluates them.
"""

from collections.abc import Callable

from pipeline.cluster.vocabulary import ALL_NAMESPACES, AntiAffinity, Requirement, Vocabulary
from pipeline.errors import StateRefused

_LABEL_INTEGER = (-(1 << 63), (1 << 63) - 1)


def meaning(requirement: Requirement) -> tuple[bool, Callable[[str], bool]]:
    """Whether a requirement holds without the label, and for each value of the label."""
    values = frozenset(requirement.values)
    match requirement.operator:
        case "In":
            return False, lambda value: value in values
        case "NotIn":
            return True, lambda value: value not in values
        case "Exists":
            return False, lambda _: True
        case "DoesNotExist":
            return True, lambda _: False
        case "Gt" | "Lt":
            bound = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
            above = requirement.operator == "Gt"
            return False, lambda value: _beyond(_integer(value), bound, above)
    raise StateRefused(
        f"requirement on {requirement.key!r}: expected the operator In, NotIn, Exists, DoesNotExist, Gt or Lt; "
        f"found {requirement.operator!r}"
    )


def _beyond(value: int | None, bound: int | None, above: bool) -> bool:
    if value is None or bound is None:
        return False
    return value > bound if above else value < bound


def _integer(text: str) -> int | None:
    """``text`` as a 64-bit decimal integer; None if it is not one, so that it satisfies neither Gt nor Lt."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    value = int(text)
    return value if _LABEL_INTEGER[0] <= value <= _LABEL_INTEGER[1] else None


def applies_in(vocabulary: Vocabulary, space: int, term: AntiAffinity, other: int) -> bool:
    """Whether a term of a task in the namespace ``space`` speaks of tasks in namespace ``other``."""
    if not term.namespaces:
        return space == other
    return ALL_NAMESPACES in term.namespaces or vocabulary.namespaces[other] in term.namespaces


def selects(term: AntiAffinity, labels: tuple[tuple[str, str], ...]) -> bool:
    """Whether a term selects a task with these labels."""
    return set(term.match_labels) <= set(labels) and all(_holds(each, labels) for each in term.match_expressions)


def _holds(requirement: Requirement, labels: tuple[tuple[str, str], ...]) -> bool:
    without, holds = meaning(requirement)
    return next((holds(value) for key, value in labels if key == requirement.key), without)
