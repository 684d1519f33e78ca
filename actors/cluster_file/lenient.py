"""Pieces of a cluster file from the wire: checked like a file, except that keys of newer writers pass unread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from actors.cluster_file.cross_references import offences
from actors.cluster_file.documents import ClusterDocument
from actors.cluster_file.reader import ClusterFileRefused
from actors.documents.messages import key_path, one_sentence


def read_leniently(document: Mapping[str, Any]) -> ClusterDocument:
    """Validate a cluster given as plain data.

    Raises
    ------
    ClusterFileRefused
        With one sentence about the first thing that is wrong.
    """
    try:
        cluster = ClusterDocument.model_validate(document, extra="ignore")
    except ValidationError as refusal:
        raise ClusterFileRefused(one_sentence(refusal)) from refusal
    for offence in offences(cluster):
        raise ClusterFileRefused(f"{key_path(offence.where)}: {offence.expected}, found {offence.found!r}")
    return cluster
