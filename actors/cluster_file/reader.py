"""Cluster files as documents: from plain data, or one sentence about the first mistake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from actors.cluster_file.cross_references import offences, overfilled
from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.plain_data import ClusterFileRefused
from actors.documents.collector import collector_paused
from actors.documents.messages import key_path, offences_in, one_sentence, sentence
from actors.documents.model import Location, Offence
from actors.documents.state_limits import STATE_LIMITS, StateLimits


@collector_paused()
def read_cluster(document: Mapping[str, Any], most: StateLimits | None = STATE_LIMITS) -> ClusterDocument:
    """Validate a cluster file given as plain data.

    Parameters
    ----------
    most
        What it may hold; None if that is checked elsewhere.

    Raises
    ------
    ClusterFileRefused
        If anything in it is wrong; the message is about the first such key in the order of the document.
    """
    try:
        cluster = ClusterDocument.model_validate(document)
    except ValidationError as error:
        found = offences_in(error, ClusterDocument)
    else:
        found = [*offences(cluster, most, living=cluster.live)]
        found = found if found or cluster.live else [*overfilled(cluster)]
        if not found:
            return cluster
    first = min(found, key=lambda offence: _position(document, offence.where))
    raise ClusterFileRefused(sentence(first, key_path(first.where) or "cluster file"), first.where)


@collector_paused()
def read_leniently(document: Mapping[str, Any], most: StateLimits | None = None) -> ClusterDocument:
    """Validate a part of a cluster file from the wire: like a file, but unknown keys of newer writers are ignored.

    Parameters
    ----------
    most
        Bounds on its size; None if the size was checked before.

    Raises
    ------
    ClusterFileRefused
        With one sentence about the first mistake.
    """
    try:
        cluster = ClusterDocument.model_validate(document, extra="ignore")
    except ValidationError as refusal:
        raise ClusterFileRefused(one_sentence(refusal)) from refusal
    refuse_first(offences(cluster, most, living=True))
    return cluster


def refuse_first(found: Iterable[Offence]) -> None:
    """Raise `ClusterFileRefused` for the first offence, if there is one."""
    for offence in found:
        raise ClusterFileRefused(sentence(offence, key_path(offence.where)))


def _position(document: Any, where: Location) -> tuple[int, ...]:
    """The place of a key in the document: its rank in each mapping and list on the path; last if it is missing."""
    position = []
    for step in where:
        if isinstance(document, Mapping):
            keys = list(document)
            position.append(keys.index(step) if step in document else len(keys))
            document = document.get(step)
        elif isinstance(document, Sequence) and isinstance(step, int):
            position.append(step)
            document = document[step] if step < len(document) else None
        else:
            position.append(0)
    return tuple(position)
