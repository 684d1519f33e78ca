"""A wake-up reaches the thread that waits for it."""

import threading

from actors.search.wakeup import WakeUp


def test_news_before_the_wait_is_not_lost() -> None:
    wake_up = WakeUp()
    wake_up.wake()
    assert wake_up.wait()


def test_a_time_that_is_past_is_not_waited_for() -> None:
    assert WakeUp(lambda: 100.0).wait(until=99.0)


def test_news_in_a_burst_wakes_once() -> None:
    wake_up = WakeUp(lambda: 0.0)
    wake_up.wake()
    wake_up.wake()
    assert wake_up.wait(settle_ms=1)
    assert wake_up.wait(until=0.0)


def test_a_closed_wake_up_ends_its_loop_for_the_last_time() -> None:
    wake_up, woken = WakeUp(), []
    thread = threading.Thread(target=lambda: woken.append(wake_up.wait()))
    thread.start()
    wake_up.close()
    thread.join(10.0)
    assert woken == [False]
    assert wake_up.closed
