"""A bell wakes who waits for it."""

import threading

from actors.search.wakeup import Bell


def test_a_ring_before_the_wait_is_not_lost() -> None:
    bell = Bell()
    bell.ring()
    assert bell.wait()


def test_a_time_that_is_past_is_not_waited_for() -> None:
    assert Bell(lambda: 100.0).wait(until=99.0)


def test_rings_in_a_burst_wake_once() -> None:
    bell = Bell(lambda: 0.0)
    bell.ring()
    bell.ring()
    assert bell.wait(settle_ms=1)
    assert bell.wait(until=0.0)


def test_a_closed_bell_wakes_its_loop_for_the_last_time() -> None:
    bell, woken = Bell(), []
    thread = threading.Thread(target=lambda: woken.append(bell.wait()))
    thread.start()
    bell.close()
    thread.join(10.0)
    assert woken == [False]
    assert bell.closed
