"""What most tests of the ingestor begin with."""

import pytest

from tests.support.told_world import World


@pytest.fixture
def world() -> World:
    """A fleet that has listed what it has."""
    made = World()
    made.list_fleet()
    return made
