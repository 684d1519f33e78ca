"""Where health is served over HTTP. What it says of a service see `test_service` and `test_standby`."""

import pytest

from actors.observability.health_server import HealthRefused, HealthServer, Pages
from tests.integration.services import asked


def test_a_port_that_is_taken_is_refused_where_it_was_asked_for_and_left_where_it_was_not() -> None:
    pages = Pages(lambda: (True, {}), lambda: (True, {}), lambda: b"")
    first = HealthServer("127.0.0.1:0", pages)
    try:
        with pytest.raises(HealthRefused, match="cannot be served"):
            HealthServer(first.url.removeprefix("http://"), pages)
        second, third = HealthServer("auto", pages), HealthServer("auto", pages)
        assert second.url != third.url
        assert [asked(f"{one.url}/live")[0] for one in (second, third)] == [200, 200]
        second.close()
        third.close()
    finally:
        first.close()
