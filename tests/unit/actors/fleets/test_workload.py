"""The simulated fleet's inventory and load."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from actors.cluster_file.reader import read_cluster
from actors.configuration.settings import SettingsRefused
from actors.fleets.inventory import load_inventory
from actors.fleets.simulated import SimulatedFleet
from actors.fleets.workload import arriving, initial_load

INVENTORY = load_inventory()
NOW = 1_700_000_000.0


@cache
def load() -> list[dict[str, Any]]:
    return initial_load(INVENTORY, 3, NOW)


def test_the_inventory_is_the_published_one() -> None:
    nodes = INVENTORY.ordered
    assert (len(nodes), sum(node.gpus for node in nodes)) == (1_523, 6_212)
    counted = Counter((node.model, node.gpus) for node in nodes)
    assert (counted["G2", 8], counted["T4", 2], counted["none", 0], counted["P100", 2]) == (549, 387, 310, 131)


def test_the_load_is_about_95_percent_and_fits_every_node() -> None:
    cluster = {**INVENTORY.cluster(), "podgroups": load()}
    fleet = SimulatedFleet(cluster, seed=3)
    assert 0.945 < fleet.used(INVENTORY.resources.gpu) < 0.96
    for name, held in fleet._held.items():
        assert all(amount <= fleet._nodes[name][resource] for resource, amount in held.items())


def test_the_same_seed_gives_the_same_load_and_a_cluster_file_that_is_accepted() -> None:
    assert load() == initial_load(INVENTORY, 3, NOW)
    gangs = [arriving(INVENTORY, NOW, serial) for serial in range(len(INVENTORY.synthetic.arrivals.kinds))]
    read = read_cluster({**INVENTORY.cluster(), "podgroups": [*load(), *gangs]})
    sizes = {podgroup.min_available for podgroup in read.podgroups[len(load()) :]}
    assert {8, 512} <= sizes
    assert min(sizes) == 8


@pytest.mark.parametrize(
    ("text", "complaint"), [("version: [", "is not YAML"), ("version: 2", "version"), (None, "cannot be read")]
)
def test_a_bad_inventory_is_refused_with_its_key(text: str | None, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "inventory.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsRefused, match=complaint):
        load_inventory(file)
