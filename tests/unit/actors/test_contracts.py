"""What the roles send each other."""

from dataclasses import fields

from actors.contracts import Batch
from pipeline.cluster.arrays import frozen
from pipeline.decision.attempt import Attempt
from pipeline.policy import Purpose
from tests.support.asking import DEFAULT
from tests.support.builders import cluster, gang


def test_a_searcher_makes_of_a_batch_the_attempt_that_was_sent() -> None:
    snapshot = cluster([{"gpu": 4}], [gang(1, [0], gpu=4), gang(1, gpu=4)])
    domains, some = frozen([0], "int64"), frozen([0], "int64")
    sent = Attempt(
        snapshot, DEFAULT, Purpose.RECLAIM, (1,), domains, 7.0, "reclaim",
        within_podgroup=True, starting=some, among=some, equally_fair=True,
    )  # fmt: skip
    found = Batch.of(3, sent, domains).attempt(snapshot, DEFAULT)
    assert [one.name for one in fields(Attempt) if getattr(found, one.name) is not getattr(sent, one.name)] == []
