"""What is compiled while a test runs."""

from typing import Any

from numba.core import event


class Compilations(event.Listener):
    """The names of kernels that were compiled."""

    def __init__(self) -> None:
        self.names = list[str]()

    def on_start(self, event: Any) -> None:
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        pass
