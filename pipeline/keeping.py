"""What follows from a record that never changes is made once and kept with it."""

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast, overload

import numpy as np

Derived = TypeVar("Derived")
#: What is kept where a function makes of a record the record itself; and what stands for nothing made yet.
_ITSELF, _NOT_MADE = object(), object()


class _WithoutLock(functools.cached_property[Derived]):
    """``functools.cached_property`` without a lock, as from Python 3.12 on: two threads may make a value twice."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Derived: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | Derived:
        """The value, which is an attribute of the instance from then on."""
        if instance is None:
            return self
        made: Derived = self.func(instance)
        instance.__dict__[str(self.attrname)] = made
        return made


#: Under the name of the one in whose place it is used.
cached_property = _WithoutLock


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
