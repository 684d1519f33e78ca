"""A start that takes too long says why: roles wait for a processor, or the machine has other work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import GetTimeoutError

from actors.ray_runtime import role_actors as module
from actors.ray_runtime.cluster import RayRefused
from actors.ray_runtime.role_actors import START_LIMIT_S, RoleActors


class SlowRay:
    """A cluster of two processors in which no actor is ready."""

    def __init__(self, free: float) -> None:
        self._free = free

    @staticmethod
    def wait(asked: list[object], **_: object) -> tuple[list[object], list[object]]:
        return [], asked

    @staticmethod
    def get(_: object, timeout: float) -> None:
        raise GetTimeoutError(f"not within {timeout} s")

    @staticmethod
    def cluster_resources() -> dict[str, float]:
        return {"CPU": 2.0}

    def available_resources(self) -> dict[str, float]:
        return {"CPU": self._free}


def started() -> RoleActors:
    """Roles whose actors were asked for."""
    made: Any = RoleActors.__new__(RoleActors)
    actor = SimpleNamespace(ready=SimpleNamespace(remote=object))
    made.committer = made.dispatcher = made.ingestor = actor
    made.searchers = [actor]
    made._starts = dict.fromkeys(range(4), "role")
    return made  # type: ignore[no-any-return] # it was made without its constructor


@pytest.mark.parametrize(
    ("free", "why"),
    [
        (0.0, "4 of 4 are missing, and of the cluster's 2 processors 0 are free"),
        (1.5, "4 of 4 are missing, and 1.5 processors are free: the machine is busy with other things"),
    ],
    ids=["roles wait for a processor", "the machine has other work"],
)
def test_roles_that_are_not_there_in_time_are_counted_and_the_reason_is_named(
    free: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ray", SlowRay(free))
    with pytest.raises(RayRefused, match="the actors did not start within 0 s: ") as refusal:
        started().await_ready(limit_s=0.0)
    assert str(refusal.value).endswith(why)


def test_a_start_beside_other_work_has_minutes() -> None:
    assert START_LIMIT_S >= 300.0
