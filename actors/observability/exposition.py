"""Figures in Prometheus' format: those of one role, and those of all roles on one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.samples import Sample

__all__ = ["CONTENT_TYPE", "Exposed", "Metric", "page"]

#: As Prometheus asks for it.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposed:
    """The figures of one role, read when they are asked for.

    Attributes
    ----------
    reader
        For the role's meter provider.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.reader = PrometheusMetricReader(
            disable_target_info=True, scope_info_enabled=False, registry=self._registry
        )

    def families(self) -> list[Metric]:
        """Every figure that was recorded; plain values, which may go to another process."""
        return list(self._registry.collect())


class _Joined(CollectorRegistry):
    """What was read in several roles, each figure with its fleet and role."""

    def __init__(self, by_role: Mapping[str, Sequence[Metric]], fleet: str) -> None:
        super().__init__()
        self._by_role, self._fleet = by_role, fleet

    def collect(self) -> Iterator[Metric]:
        """One family for each figure, in the order of the names."""
        families: dict[str, Metric] = {}
        for role, metrics in sorted(self._by_role.items()):
            for one in metrics:
                known = families.setdefault(one.name, Metric(one.name, one.documentation, one.type, one.unit))
                known.samples += _labelled(one.samples, self._fleet, role)
        yield from (families[name] for name in sorted(families))


def _labelled(samples: Iterable[Sample], fleet: str, role: str) -> list[Sample]:
    return [one._replace(labels={**one.labels, "fleet": fleet, "role": role}) for one in samples]


def page(by_role: Mapping[str, Sequence[Metric]], fleet: str) -> bytes:
    """The figures of all roles as Prometheus reads them; the labels ``fleet`` and ``role`` say whose each is."""
    return generate_latest(_Joined(by_role, fleet))
