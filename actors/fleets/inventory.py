"""The inventory of a simulated fleet: its file, checked, and the empty cluster that it describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from actors.configuration.settings import SettingsRefused
from actors.documents.bounded_files import text_of
from actors.documents.messages import one_sentence
from actors.documents.shipped import CONFIG

SHIPPED = CONFIG / "examples" / "openb.yaml"
MIB = 1 << 20
PODS_OF_A_NODE = 110

Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NodeClass(_Part):
    """Nodes that are alike."""

    model: str
    gpus: NotNegative
    cpu_milli: Positive
    memory_mib: Positive
    nodes: Positive


class PodShape(_Part):
    """Pods with the same request."""

    gpu_milli: NotNegative
    cpu_milli: NotNegative
    memory_mib: NotNegative
    qos: str
    pods: Positive


class Network(_Part):
    """A network of two levels over the nodes in order."""

    levels: tuple[str, str]
    nodes_per_leaf: Positive
    leaves_per_spine: Positive


class QueueShare(_Part):
    """A queue: its share of all GPUs that it deserves, and its share of the initial load."""

    name: str
    deserved: Share
    load: Share


class Load(_Part):
    """The initial load.

    Attributes
    ----------
    gpus
        Fraction of all GPUs that it takes.
    priority
        By the recorded class of service.
    protected, elastic
        Fraction of podgroups that are not preemptible, and of those that need only half their tasks.
    at_home
        Fraction of podgroups that are surely in the queue of their nodes; the others are in any queue.
    widths
        By number of tasks of a podgroup: how often it occurs, as a weight.
    grace_s
        The shortest and the longest time that a task takes to end, in seconds.
    """

    gpus: Share
    priority: dict[str, int]
    protected: Share
    at_home: Share
    widths: dict[int, Positive]
    elastic: Share
    grace_s: tuple[float, float]


class ArrivalKind(_Part):
    """A kind of gangs that arrive; all their tasks lie in one domain of ``level``."""

    tasks: Positive
    gpus: NotNegative
    cpu_milli: Positive
    memory_mib: Positive
    level: str | None
    queue: str
    priority: int


class Arrivals(_Part):
    """How often gangs arrive and how long they run, in seconds; kinds take turns."""

    every_s: Annotated[float, Field(gt=0)]
    runs_s: tuple[float, float]
    kinds: Annotated[tuple[ArrivalKind, ...], Field(min_length=1)]


class Synthetic(_Part):
    """The parts of the inventory that are not recorded but made up; ``speed`` is its seconds for each real one."""

    topology: Network
    queues: Annotated[tuple[QueueShare, ...], Field(min_length=1)]
    load: Load
    arrivals: Arrivals
    speed: Annotated[float, Field(gt=0)] = 1.0


class Resources(_Part):
    """Name of the resource of GPUs; a whole GPU is 1000."""

    gpu: str


class Inventory(_Part):
    """The whole file."""

    version: Literal[1]
    resources: Resources
    node_classes: Annotated[tuple[NodeClass, ...], Field(min_length=1)]
    pod_shapes: Annotated[tuple[PodShape, ...], Field(min_length=1)]
    synthetic: Synthetic

    def amounts(self, cpu_milli: int, memory_mib: int, gpu_milli: int) -> dict[str, int | str]:
        """Resources as the cluster file writes them; what is 0 is left out."""
        said: dict[str, int | str] = {"cpu": f"{cpu_milli}m", "memory": memory_mib * MIB, self.resources.gpu: gpu_milli}
        return {name: amount for name, amount in said.items() if amount not in (0, "0m")}

    @property
    def ordered(self) -> list[NodeClass]:
        """One entry for each node, in the order of the network: by GPUs, model and class."""
        classes = sorted(self.node_classes, key=lambda one: (-one.gpus, one.model, -one.cpu_milli, -one.memory_mib))
        return [one for one in classes for _ in range(one.nodes)]

    def cluster(self) -> dict[str, Any]:
        """Nodes, topology and queues as a cluster file."""
        nodes = self.ordered
        named = [(f"node-{at:04d}", one) for at, one in enumerate(nodes)]
        return {
            "version": 1,
            "nodes": [
                {
                    "name": name,
                    "allocatable": {
                        **self.amounts(one.cpu_milli, one.memory_mib, one.gpus * 1000),
                        "pods": PODS_OF_A_NODE,
                    },
                    "labels": {"model": one.model},
                }
                for name, one in named
            ],
            "topology": self._topology([name for name, _ in named]),
            "queues": [self._queue(queue, nodes) for queue in self.synthetic.queues],
        }

    def _topology(self, names: list[str]) -> dict[str, Any]:
        wired = self.synthetic.topology
        spine_of, leaf_of = wired.nodes_per_leaf * wired.leaves_per_spine, wired.nodes_per_leaf
        outer, inner = wired.levels
        spines = [{"name": f"{outer}-{at}", "level": outer} for at in range(-(-len(names) // spine_of))]
        leaves = [
            {
                "name": f"{inner}-{at}",
                "level": inner,
                "parent": f"{outer}-{at // wired.leaves_per_spine}",
                "nodes": names[at * leaf_of : (at + 1) * leaf_of],
            }
            for at in range(-(-len(names) // leaf_of))
        ]
        return {"levels": [outer, inner], "domains": [*spines, *leaves]}

    def _queue(self, queue: QueueShare, nodes: list[NodeClass]) -> dict[str, Any]:
        deserved = self.amounts(0, 0, int(queue.deserved * sum(one.gpus for one in nodes) * 1000))
        return {"name": queue.name, "deserved": deserved}


def load_inventory(path: Path | None = None) -> Inventory:
    """Read an inventory; by default the shipped one.

    Raises
    ------
    SettingsRefused
        If the file cannot be read, is not YAML, or is not a valid inventory.
    """
    file = path if path is not None else SHIPPED
    try:
        said = yaml.safe_load(text_of(file))
        return Inventory.model_validate(said)
    except yaml.YAMLError as refusal:
        raise SettingsRefused(f"{file}: is not YAML: {' '.join(str(refusal).split())}") from refusal
    except ValidationError as refusal:
        raise SettingsRefused(f"{file}: {one_sentence(refusal, model=Inventory)}") from refusal
    except (OSError, RecursionError, ValueError) as refusal:
        raise SettingsRefused(f"{file}: cannot be read: {refusal}") from refusal
