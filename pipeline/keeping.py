"""What follows from a record that never changes is made once and kept with it."""

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast, overload

import numpy as np

Derived = TypeVar("Derived")
Record = TypeVar("Record")
#: What is kept where a function makes of a record the record itself; and what stands for nothing made yet.
_ITSELF, _NOT_MADE = object(), object()


class _WithoutLock(functools.cached_property[Derived]):
    """``functools.cached_property`` without a lock, as from Python 3.12 on: two threads may make a value twice."""

    attrname: str

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Derived: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | Derived:
        """The value, which is an attribute of the instance from then on."""
        if instance is None:
            return self
        made = instance.__dict__[self.attrname] = self.func(instance)
        return made


#: Under the name of the one in whose place it is used.
cached_property = _WithoutLock


def made_of(record: object, name: str) -> Any:
    """What was made of a record under the name of a `cached_property`; None if nothing was yet."""
    return record.__dict__.get(name)


def begun_with(record: Record, **made: Any) -> Record:
    """A new record, for which these properties need not be made: the caller knows what they would be.

    Raises
    ------
    TypeError
        For a name that is no `cached_property` of the record.
    """
    for name in made:
        if not isinstance(getattr(type(record), name, None), cached_property):
            raise TypeError(f"{type(record).__name__}: expected a cached property, found {name}")
    record.__dict__.update(made)
    return record


def begun_like(record: Record, before: object, *names: str) -> Record:
    """A new record with those of these properties that were made of ``before``, where they are the same."""
    known = before.__dict__
    return begun_with(record, **{name: known[name] for name in names if name in known})


class Keeping:
    """A record (a frozen dataclass without slots) that keeps what was made of it; its copies begin with nothing."""

    def once(self, derive: Callable[[Self], Derived]) -> Derived:
        """What ``derive`` makes of this record, made once and kept with it for all searches.

        ``derive`` is a function of a module; an array that it makes is read only from then on.
        """
        kept = self._kept.get(derive, _NOT_MADE)
        if kept is _NOT_MADE:
            kept = derive(self)
            if isinstance(kept, np.ndarray):
                kept.flags.writeable = False
            # One that kept itself would live until a full collection, which is rare among millions of objects.
            self._kept[derive] = _ITSELF if kept is self else kept
        if kept is _ITSELF:
            return cast(Derived, self)
        made: Derived = kept
        return made

    def answers(self, of: Callable[..., Derived]) -> dict[Any, Derived]:
        """What a function that is asked about this record has answered, by what it was asked; empty at first.

        The function fills it. It saves work, and decides nothing: the answers are what the function would say again.
        """
        return self._answers.setdefault(of, {})

    @cached_property
    def _answers(self) -> dict[Callable[..., Any], dict[Any, Any]]:
        return {}

    @cached_property
    def _kept(self) -> dict[Callable[..., Any], Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """What it is pickled with."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_answers", "_kept")}
