"""A snapshot ends with the last who holds it: a full collection, which frees rings of references, hardly ever comes."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from actors.configuration.profiles import load_profile
from pipeline.cycle import cycle
from tests.support.builders import cluster, gang

NODE = {"gpu": 4}
PROFILES = ("default", "kai", "koordinator", "volcano")


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Without the garbage collector: only counted references free anything."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_that_a_cycle_derives_keeps_its_snapshot(profile: str) -> None:
    waiting = [gang(2, gpu=4, priority=1), gang(1, gpu=1, priority=2), gang(3, gpu=4, priority=3)]
    state = cluster([NODE] * 2, [gang(4, [0, 0, 1, 1], gpu=2, minimum=0), *waiting])
    done = cycle(state, load_profile(profile), 0.0)
    assert any(len(made.evictions) for made in done.statements)
    before, after = weakref.ref(state), weakref.ref(done.snapshot)
    del state, done
    assert (before(), after()) == (None, None)


def test_what_a_function_derives_may_be_the_snapshot_itself() -> None:
    state = cluster([NODE], [gang(1, gpu=1)])
    asked = []

    def itself(snapshot):
        asked.append(snapshot)
        return snapshot

    assert state.once(itself) is state
    assert state.once(itself) is state
    assert len(asked) == 1
