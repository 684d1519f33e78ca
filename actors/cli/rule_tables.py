"""Lines of a batch that are not cluster files but questions to single rules of the profile ``kai``.

One kind asks how a resource is divided among sibling queues, the other whether a queue may take given victims. The
description of the conformance cases has their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, model_validator

from actors.cluster_file.plain_data import ClusterFileRefused
from actors.documents.messages import one_sentence
from actors.documents.model import Amount, Document, Finite, Keyed, ListOf, Name, Offence, Priority, offended
from pipeline.cluster.arrays import NONE, Floats
from pipeline.cluster.fairness.division import Siblings, divided
from pipeline.cluster.fairness.gate import QueueShares, Victims, may_reclaim, may_take

_DIVISION, _RECLAIM = "total", "reclaimer"
_Row = Field(strict=False)
_Bound = Amount | None
_Triple = Annotated[tuple[Amount, Amount, Amount], _Row]
_Bounds = Annotated[tuple[_Bound, _Bound, _Bound], _Row]
_Sibling = Annotated[tuple[Name, Priority, Finite, _Bound, _Bound, Amount, Amount, Amount], _Row]
_Queue = Annotated[tuple[Name, Name | None, _Bounds, _Bounds, _Triple, _Triple], _Row]


class DivisionLine(Document):
    """How ``total`` is divided; a queue has name, priority, created, deserved, limit, weight, request, usage."""

    id: str = ""
    total: Amount
    k: Amount
    queues: ListOf[_Sibling]
    fair_share: Any = None


class ReclaimLine(Document):
    """Whether victims may be taken; a row is name, parent, deserved, fair share, allocated, non-preemptible."""

    id: str = ""
    multiplier: Amount
    reclaimer: Name
    preemptible: bool
    request: _Triple
    queues: ListOf[_Queue]
    victims: Keyed[ListOf[_Triple]]
    can_reclaim: Any = None
    allowed: Any = None

    @model_validator(mode="after")
    def _known_queues(self) -> ReclaimLine:
        parent = {queue[0]: queue[1] for queue in self.queues}
        named = [("reclaimer", self.reclaimer), *(("victims", name) for name in self.victims)]
        named += [("queues", name) for name in parent.values() if name is not None]
        offended(
            Offence((key,), "expected the name of one of the queues", name) for key, name in named if name not in parent
        )
        for name, above in parent.items():
            way = {name}
            while above is not None and above not in way:
                way.add(above)
                above = parent[above]  # noqa: PLW2901
            if above is not None:
                offended([Offence(("queues",), "expected queues that form a tree", name)])
        return self


def is_question(document: Mapping[str, Any]) -> bool:
    """Whether a line of a batch is a question to a rule."""
    return "version" not in document and (_DIVISION in document or _RECLAIM in document)


def answer_of_rule(document: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the rule that a line asks.

    Raises
    ------
    ClusterFileRefused
        If the line does not have the columns of its kind.
    """
    model = DivisionLine if _DIVISION in document else ReclaimLine
    try:
        asked = model.model_validate(document)
    except ValidationError as error:
        raise ClusterFileRefused(one_sentence(error, model=model)) from error
    if isinstance(asked, DivisionLine):
        return {"id": asked.id, "error": None, "fair_share": _shares(asked)}
    can, allowed = _gate(asked)
    return {"id": asked.id, "error": None, "can_reclaim": can, "allowed": allowed}


def _bounds(rows: Sequence[Sequence[float | None]]) -> Floats:
    """float64[M, 3]: the amounts of rows, infinite where none is stated."""
    return np.array([[np.inf if amount is None else amount for amount in row] for row in rows], np.float64).reshape(
        -1, 3
    )


def _shares(line: DivisionLine) -> list[float]:
    queues = line.queues
    seniority = np.empty(len(queues), np.int64)
    seniority[sorted(range(len(queues)), key=lambda at: (queues[at][2], queues[at][0]))] = np.arange(len(queues))

    def column(at: int) -> Floats:
        return np.array([np.inf if queue[at] is None else queue[at] for queue in queues], np.float64)

    siblings = Siblings(
        np.array([queue[1] for queue in queues], np.int32),
        seniority,
        deserved=column(3),
        requestable=np.minimum(column(4), column(6)),
        weight=column(5),
        usage=column(7),
    )
    return [_plain(amount) for amount in divided(float(line.total), float(line.k), siblings).tolist()]


def _plain(amount: float) -> float:
    return int(amount) if amount == int(amount) else amount


def _gate(line: ReclaimLine) -> tuple[bool, bool]:
    row = {queue[0]: at for at, queue in enumerate(line.queues)}
    parent = np.array([NONE if queue[1] is None else row[queue[1]] for queue in line.queues], np.int32)
    deserved, share = _bounds([queue[2] for queue in line.queues]), _bounds([queue[3] for queue in line.queues])
    allocated, fixed = _bounds([queue[4] for queue in line.queues]), _bounds([queue[5] for queue in line.queues])
    queues = QueueShares(parent, deserved, share, np.maximum(deserved, share), allocated, fixed)
    units = [unit for held in line.victims.values() for unit in held]
    victims = Victims(
        np.array([row[name] for name in line.victims], np.int64),
        np.cumsum([0, *(len(held) for held in line.victims.values())]).astype(np.int64),
        _bounds(units),
    )
    mine, request = row[line.reclaimer], _bounds([line.request])[0]
    return (
        bool(may_reclaim(queues, mine, request, line.preemptible)),
        bool(may_take(queues, mine, request, line.preemptible, victims, float(line.multiplier))),
    )
