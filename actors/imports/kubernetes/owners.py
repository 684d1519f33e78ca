"""Owners of pods: Job, JobSet, Deployment and others. One without pods among the manifests stands for its pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from actors.imports.fields import Fields
from actors.imports.kubernetes.pods import Pod, owner_kind, read_pod

_QUEUE = "kueue.x-k8s.io/queue-name"


@dataclass(slots=True)
class Owner:
    """An owner.

    Attributes
    ----------
    kind
        With its group, as `owner_kind` writes it.
    templates
        The name, the number and the template of the pods that it makes.
    """

    about: Fields
    namespace: str
    kind: str
    name: str
    owner: tuple[str, str] | None
    templates: list[tuple[str, int, Fields]] = field(default_factory=list)


@dataclass(slots=True)
class Owners:
    """The owners that were read, by namespace, kind and name."""

    found: dict[tuple[str, str, str], Owner] = field(default_factory=dict)

    def _start(self, about: Fields, kind: str) -> tuple[Owner, Fields]:
        metadata = about.inside("metadata")
        owners = metadata.items("ownerReferences")
        above = (owner_kind(owners[0]), owners[0].text("name")) if owners else None
        owner = Owner(about, metadata.text("namespace", "default"), kind, metadata.text("name"), above)
        self.found[owner.namespace, kind, owner.name] = owner
        return owner, about.inside("spec")

    def job(self, about: Fields) -> None:
        """``Job``."""
        owner, spec = self._start(about, "batch/Job")
        self._job(owner, spec, owner.name, 1)
        labels = about.inside("metadata").words("labels")
        status = about.inside("status")
        over = status.text("completionTime") or any(
            each.text("status") == "True" and each.text("type") in ("Complete", "Failed")
            for each in status.items("conditions")
        )
        if over or (spec.flag("suspend") and _QUEUE not in labels):
            owner.templates = []

    @staticmethod
    def _job(owner: Owner, spec: Fields, name: str, copies: int) -> None:
        at_once = spec.count("parallelism", 1)
        completions = spec.whole("completions")
        pods = at_once if completions is None else min(at_once, completions)
        owner.templates.append((name, pods * copies, _template(spec)))

    def job_set(self, about: Fields) -> None:
        """``JobSet``."""
        owner, spec = self._start(about, "jobset.x-k8s.io/JobSet")
        suspended = spec.flag("suspend") and _QUEUE not in about.inside("metadata").words("labels")
        for each in spec.items("replicatedJobs"):
            each.skip("groupName", "dependsOn")
            template = each.inside("template")
            template.skip("metadata")
            self._job(owner, template.inside("spec"), f"{owner.name}-{each.text('name')}", each.count("replicas", 1))
        if suspended:
            owner.templates = []

    def replicated(self, about: Fields) -> None:
        """``Deployment``, ``ReplicaSet`` and ``StatefulSet``: ``replicas`` pods of one template."""
        owner, spec = self._start(about, f"{about.manifest.group}/{about.manifest.kind}")
        owner.templates.append((owner.name, spec.count("replicas", 1), _template(spec)))

    def above(self, pod: Pod) -> list[Owner]:
        """The owners of a pod, the nearest first."""
        chain: list[Owner] = []
        key = pod.owner
        while key is not None and (owner := self.found.get((pod.namespace, *key))) is not None and owner not in chain:
            chain.append(owner)
            key = owner.owner
        return chain

    def stand_ins(self, pods: list[Pod]) -> Iterator[tuple[Owner, Pod, int]]:
        """For owners without pods: one pod for each template, and how many of it there will be."""
        owned = {(pod.namespace, *pod.owner) for pod in pods if pod.owner is not None}
        owned |= {(owner.namespace, *owner.owner) for owner in self.found.values() if owner.owner is not None}
        for key, owner in sorted(self.found.items()):
            there = key in owned or self._selects(owner, pods)
            for name, count, template in owner.templates:
                pod = (
                    read_pod(template, template_of=(owner.namespace, name, owner.kind)) if count and not there else None
                )
                if pod is not None:
                    pod.owner = (owner.kind, owner.name)
                    pod.task["count"] = count
                    if (created := owner.about.inside("metadata").time("creationTimestamp")) is not None:
                        pod.task["created"] = created
                    yield owner, pod, count

    @staticmethod
    def _selects(owner: Owner, pods: list[Pod]) -> bool:
        selector = owner.about.inside("spec").inside("selector").words("matchLabels")
        own = (pod for pod in pods if pod.namespace == owner.namespace)
        return bool(selector) and any(selector.items() <= pod.labels.items() for pod in own)


def _template(spec: Fields) -> Fields:
    """The template of pods. Its keys count as read: it decides nothing if its pods are among the manifests."""
    template = spec.inside("template")
    template.skip(*template.data)
    return template
