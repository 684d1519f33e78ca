"""That a start must compile is said, and how far it is."""

from actors.warming.warm import Compiling
from tests.support.assembly import Clock


def test_the_first_kernel_is_said_and_then_how_many_there_were_now_and_then() -> None:
    said, clock = list[str](), Clock(100.0)
    listener = Compiling(said.append, clock)
    for _ in range(25):
        listener.on_start(None)
        clock.now += 1.0
        listener.on_end(None)
    assert said[0].startswith("kernels are compiled for this processor")
    assert said[1:] == ["10 kernels compiled so far", "20 kernels compiled so far"]
