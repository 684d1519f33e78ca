"""Keys of a cluster file that nobody reads yet: refused where they stand, for nothing is to be ignored silently."""

from __future__ import annotations

from collections.abc import Iterator

from actors.cluster_file.documents import ClusterDocument
from actors.configuration.profiles import LATER
from actors.documents.model import Location, Offence

_POLICY = ("placement", "stale_grace_seconds", "consolidation_max_victims", "allow_consolidating_reclaim")
_QUEUE = ("over_quota_weight",)
_PODGROUP = ("stale_since", "stale_grace_seconds")


def unread(cluster: ClusterDocument) -> Iterator[Offence]:
    """Each such key that was given; none where the profile is one of those that are refused as a whole."""
    if cluster.policy is not None and cluster.policy.profile in LATER:
        return
    documents: list[tuple[Location, object, tuple[str, ...]]] = [(("policy",), cluster.policy, _POLICY)]
    documents += [(("queues", at), queue, _QUEUE) for at, queue in enumerate(cluster.queues)]
    documents += [(("podgroups", at), podgroup, _PODGROUP) for at, podgroup in enumerate(cluster.podgroups)]
    for where, document, keys in documents:
        for key in keys:
            if key in getattr(document, "model_fields_set", ()):
                yield Offence((*where, key), f"{key} is not supported yet: expected none", getattr(document, key))
