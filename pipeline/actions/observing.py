"""How a cycle tells an observer what it does. Nothing comes back from the observer."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Noted = str | bool | int | float | None


class Notes(Protocol):
    """Takes attributes of a step while the step lasts."""

    def set(self, **attributes: Noted) -> None:
        """Note some attributes."""
        ...


class Observer(Protocol):
    """Observes the steps of a cycle."""

    def step(self, name: str, **attributes: Noted) -> AbstractContextManager[Notes]:
        """A step, for as long as the context lasts."""
        ...


class _Forgotten:
    def set(self, **attributes: Noted) -> None:
        """Do nothing."""


class Unobserved:
    """Implements `Observer` where nothing is observed."""

    def step(self, name: str, **attributes: Noted) -> AbstractContextManager[Notes]:  # noqa: ARG002
        """Nothing is kept."""
        return nullcontext(_Forgotten())
