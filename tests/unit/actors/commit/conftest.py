"""What tests of the committer begin with."""

import pytest

from tests.support.assembly import HeldBack, offered_room


@pytest.fixture
def held() -> HeldBack:
    """An offer that makes room for a gang."""
    return offered_room()
