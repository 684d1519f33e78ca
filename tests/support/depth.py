"""How many examples and seeds a property is asked about: a sample in ``make test``, all in ``make properties``."""

from hypothesis import settings

#: Examples of a property that says nothing else, when all are taken.
_ALL = 100


def sampled(count: int, *, least: int = 5) -> int:
    """As large a part of ``count`` as the profile that was chosen (see `tests/conftest.py`) takes of a hundred."""
    part = min(settings.default.max_examples, _ALL)
    return max(count * part // _ALL, min(count, least))
