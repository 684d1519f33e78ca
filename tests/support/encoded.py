"""A snapshot's bytes in one piece of their own: what a test keeps, compares, cuts or harms."""

from pipeline.cluster.checkpoint import encode
from pipeline.cluster.snapshot import Snapshot


def encoded(snapshot: Snapshot) -> bytes:
    return b"".join(encode(snapshot))
