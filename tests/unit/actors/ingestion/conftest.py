"""What most tests of the ingestor begin with."""

import pytest

from actors.ingestion.ingestor import Ingestor
from tests.support.told_world import World


@pytest.fixture
def world() -> World:
    """A fleet that has listed what it has."""
    made = World()
    made.list_fleet()
    return made


@pytest.fixture
def ingestor(world: World) -> Ingestor:
    """One that has read the list."""
    return world.ingestor()
