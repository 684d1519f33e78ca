"""The arguments of plugins and actions: names, and the kind of value of each."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.cluster.counted.recent_evictions import HORIZON_S
from pipeline.policy import Argument

#: The largest amount. All whole numbers up to it are exact as floats, and products with quantities are finite.
_MOST = 2**53


@dataclass(frozen=True)
class Kind:
    """A kind of argument: what a refusal says was expected, and whether a value is of this kind."""

    expected: str
    fits: Callable[[object], bool]


def _is_amount(value: object) -> bool:
    # True is an int to Python; a negative number or NaN is no amount.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST


SWITCH = Kind("expected true or false", lambda value: isinstance(value, bool))
COUNT = Kind("expected a whole number, 0 to 2^53", lambda value: _is_amount(value) and isinstance(value, int))
NUMBER = Kind("expected a number, 0 to 2^53", _is_amount)
#: The length of a window of time, in seconds: the state remembers no more.
WINDOW = Kind(
    f"expected a number of seconds from 1 to {HORIZON_S}",
    lambda value: _is_amount(value) and isinstance(value, int | float) and 1 <= value <= HORIZON_S,
)
#: A text such as ``1h30m`` in files; seconds in a policy.
DURATION = Kind("expected a duration such as 3m or 1h30m", _is_amount)
WEIGHTS = Kind(
    "expected a mapping of resources to numbers, 0 to 2^53",
    lambda value: isinstance(value, Mapping) and all(map(_is_amount, value.values())),
)


def choice(*words: str) -> Kind:
    """One of a few words."""
    return Kind(f"expected {' or '.join(words)}", lambda value: value in words)


def offences(kinds: Mapping[str, Kind], given: Mapping[str, Argument]) -> Iterator[tuple[str, str]]:
    """Arguments that are unknown or have a wrong value, each with what was expected."""
    for key, value in given.items():
        if key not in kinds:
            known = f"one of {', '.join(kinds)}" if kinds else "no arguments here"
            yield key, f"expected {known} (others are not supported yet)"
        elif not kinds[key].fits(value):
            yield key, kinds[key].expected
