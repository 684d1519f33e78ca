"""What every bus does, asked of the one in memory and of a real broker alike."""

from __future__ import annotations

import threading
import time

import pytest

from actors.broker.bus import DEAD, DECISIONS, EVENTS, SPANS, START, Bounds, Bus, DeadLetter, has_gap, id_order
from actors.broker.memory_bus import MemoryBus
from actors.broker.redis_bus import RedisBus


def publish(bus: Bus, *texts: bytes) -> list[str]:
    return [bus.publish(EVENTS, {"batch": text}) for text in texts]


def texts(entries: list) -> list[bytes]:
    return [entry.fields["batch"] for entry in entries]


def test_entries_come_back_in_order_with_increasing_ids(bus: Bus) -> None:
    ids = publish(bus, b"a", b"\x00\xff", b"c")
    entries = bus.follow(EVENTS, START)
    assert [entry.id for entry in entries] == ids == sorted(ids, key=id_order)
    assert texts(entries) == [b"a", b"\x00\xff", b"c"]


def test_many_entries_go_with_one_call_and_keep_their_order(bus: Bus) -> None:
    ids = bus.publish_all(EVENTS, [{"batch": text} for text in (b"a", b"b", b"c")])
    assert [entry.id for entry in bus.follow(EVENTS, START)] == ids == sorted(ids, key=id_order)
    assert texts(bus.follow(EVENTS, START)) == [b"a", b"b", b"c"]
    assert bus.publish_all(EVENTS, []) == []
    bus.publish_all(EVENTS, [{"batch": b"x"}] * 500, cap=100)
    assert 100 <= bus.bounds(EVENTS).length < 400


def test_a_group_hands_each_entry_to_one_member(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    publish(bus, b"a", b"b", b"c")
    one = bus.read(EVENTS, "g", "one", count=2)
    two = bus.read(EVENTS, "g", "two", count=2)
    assert (texts(one), texts(two)) == ([b"a", b"b"], [b"c"])
    assert bus.read(EVENTS, "g", "one") == []


def test_two_groups_read_everything_each(bus: Bus) -> None:
    publish(bus, b"a", b"b")
    for group in ("g", "h"):
        bus.join(EVENTS, group)
        assert texts(bus.read(EVENTS, group, "me")) == [b"a", b"b"]


def test_joining_again_changes_nothing(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    publish(bus, b"a")
    bus.read(EVENTS, "g", "me")
    bus.join(EVENTS, "g")
    assert bus.read(EVENTS, "g", "me") == []


def test_a_reader_that_comes_back_finds_its_pending_entries(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    publish(bus, b"a", b"b")
    first, _ = bus.read(EVENTS, "g", "me")
    assert bus.acknowledge(EVENTS, "g", [first.id]) == 1
    again = bus.read(EVENTS, "g", "me", pending=True)
    assert texts(again) == [b"b"]
    assert bus.read(EVENTS, "g", "other", pending=True) == []


def test_acknowledging_twice_counts_once(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    publish(bus, b"a")
    ids = [entry.id for entry in bus.read(EVENTS, "g", "me")]
    assert [bus.acknowledge(EVENTS, "g", ids), bus.acknowledge(EVENTS, "g", ids)] == [1, 0]
    assert bus.acknowledge(EVENTS, "g", []) == 0


def test_a_dead_members_entries_are_taken_over(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    publish(bus, b"a", b"b")
    bus.read(EVENTS, "g", "dead")
    for heir in ("first", "second"):
        assert texts(bus.recover(EVENTS, "g", heir, idle_ms=0)) == [b"a", b"b"]
    assert bus.recover(EVENTS, "g", "me", idle_ms=3_600_000) == []


def test_a_blocked_reader_wakes_when_something_arrives(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    publisher = threading.Timer(0.05, lambda: publish(bus, b"late"))
    publisher.start()
    assert texts(bus.read(EVENTS, "g", "me", block_ms=5_000)) == [b"late"]
    publisher.join()


def test_a_blocked_follower_wakes_when_something_arrives(bus: Bus) -> None:
    (first,) = publish(bus, b"early")
    publisher = threading.Timer(0.05, lambda: publish(bus, b"late"))
    publisher.start()
    assert texts(bus.follow(EVENTS, first, block_ms=5_000)) == [b"late"]
    publisher.join()


def test_several_streams_are_read_at_once_each_from_its_own_position(bus: Bus) -> None:
    ids = publish(bus, b"a", b"b")
    bus.publish(DECISIONS, {"batch": b"made"})
    found = bus.follow_any({EVENTS: ids[0], DECISIONS: START})
    assert {stream: texts(entries) for stream, entries in found.items()} == {EVENTS: [b"b"], DECISIONS: [b"made"]}
    assert {entry.stream for entries in found.values() for entry in entries} == {EVENTS, DECISIONS}
    publish(bus, b"c")
    assert texts(bus.follow_any({EVENTS: START, DECISIONS: START}, count=2)[EVENTS]) == [b"a", b"b"]


def test_who_waits_for_several_streams_wakes_with_an_entry_of_any(bus: Bus) -> None:
    (first,) = publish(bus, b"early")
    publisher = threading.Timer(0.05, lambda: bus.publish(DECISIONS, {"batch": b"late"}))
    publisher.start()
    found = bus.follow_any({EVENTS: first, DECISIONS: START}, block_ms=5_000)
    assert {stream: texts(entries) for stream, entries in found.items()} == {EVENTS: [], DECISIONS: [b"late"]}
    publisher.join()


def test_streams_without_news_are_empty_whether_they_are_there_or_not(bus: Bus) -> None:
    (first,) = publish(bus, b"early")
    for block_ms in (0, 20):
        assert bus.follow_any({EVENTS: first, DECISIONS: START}, block_ms=block_ms) == {EVENTS: [], DECISIONS: []}


def test_a_reader_gives_up_when_nothing_arrives(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    assert bus.read(EVENTS, "g", "me", block_ms=20) == []
    assert bus.follow(EVENTS, START, block_ms=20) == []


def test_following_takes_up_behind_an_entry(bus: Bus) -> None:
    ids = publish(bus, b"a", b"b", b"c")
    assert texts(bus.follow(EVENTS, ids[0], count=1)) == [b"b"]
    assert bus.follow(EVENTS, ids[2]) == []


def test_the_newest_come_first_when_read_from_the_end(bus: Bus) -> None:
    ids = publish(bus, b"a", b"b", b"c")
    assert texts(bus.newest(EVENTS, count=2)) == [b"c", b"b"]
    assert texts(bus.newest(EVENTS, count=5, before=ids[1])) == [b"a"]
    assert bus.newest(DEAD) == []


def test_trimming_keeps_what_one_group_has_not_acknowledged(bus: Bus) -> None:
    for group in ("quick", "slow"):
        bus.join(EVENTS, group)
    ids = publish(bus, b"a", b"b", b"c", b"d")
    bus.acknowledge(EVENTS, "quick", [entry.id for entry in bus.read(EVENTS, "quick", "me")])
    bus.read(EVENTS, "slow", "me", count=3)
    bus.acknowledge(EVENTS, "slow", [ids[0], ids[2]])
    assert bus.trim(EVENTS, covered=ids[3]) == 1
    assert texts(bus.follow(EVENTS, START)) == [b"b", b"c", b"d"]


def test_trimming_keeps_what_a_group_was_never_handed(bus: Bus) -> None:
    ids = publish(bus, b"a", b"b", b"c")
    bus.join(EVENTS, "g")
    bus.acknowledge(EVENTS, "g", [entry.id for entry in bus.read(EVENTS, "g", "me", count=1)])
    assert bus.trim(EVENTS, covered=ids[2]) == 0


def test_trimming_keeps_what_no_checkpoint_covers(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    ids = publish(bus, b"a", b"b", b"c")
    bus.acknowledge(EVENTS, "g", [entry.id for entry in bus.read(EVENTS, "g", "me")])
    assert bus.trim(EVENTS, covered=ids[1]) == 1
    assert texts(bus.follow(EVENTS, START)) == [b"b", b"c"]
    assert bus.trim(DEAD, covered=ids[1]) == 0


def test_what_is_covered_is_not_to_be_acknowledged_any_more_by_any_consumer_that_was_handed_it(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    ids = publish(bus, b"a", b"b", b"c", b"d")
    for member in ("gone", "here", "here"):
        bus.read(EVENTS, "g", member, count=1)
    bus.cover(EVENTS, "g", upto=ids[1])
    assert bus.lags(EVENTS)["g"].pending == 1
    assert bus.trim(EVENTS, covered=ids[3]) == 2
    bus.cover(EVENTS, "g", upto=ids[0])  # of a reader that is behind: nothing is handed out again
    assert texts(bus.read(EVENTS, "g", "here")) == [b"d"]


def test_a_group_that_was_handed_nothing_reads_on_behind_what_is_covered(bus: Bus) -> None:
    bus.join(EVENTS, "g")
    ids = publish(bus, b"a", b"b", b"c")
    bus.cover(EVENTS, "g", upto=ids[1])
    assert bus.lags(EVENTS)["g"].undelivered == 1
    assert texts(bus.read(EVENTS, "g", "me")) == [b"c"]
    bus.cover(EVENTS, "nobody", upto=ids[2])
    bus.cover(DEAD, "g", upto=ids[2])


def test_a_gap_is_what_was_trimmed_behind_the_readers_back(bus: Bus) -> None:
    ids = publish(bus, b"a", b"b", b"c", b"d")
    assert not has_gap(bus.bounds(EVENTS), START)
    bus.trim(EVENTS, covered=ids[2])
    bounds = bus.bounds(EVENTS)
    assert bounds == Bounds(ids[2], ids[3], 2, 4)
    assert [has_gap(bounds, after) for after in (START, *ids)] == [True, True, True, False, False]


def test_a_stream_of_which_nothing_is_left_is_a_gap() -> None:
    bounds = Bounds(START, "5-0", 0, 3)
    assert [has_gap(bounds, after) for after in (START, "4-0", "5-0", "6-0")] == [True, True, False, True]


def test_a_stream_that_was_lost_is_a_gap(bus: Bus) -> None:
    assert bus.bounds(EVENTS) == Bounds()
    assert has_gap(bus.bounds(EVENTS), "1700000000000-0")
    assert not has_gap(bus.bounds(EVENTS), START)


def test_lag_counts_what_is_unread_and_what_is_unacknowledged(bus: Bus) -> None:
    assert bus.lags(EVENTS) == {}
    bus.join(EVENTS, "g")
    publish(bus, b"a", b"b", b"c")
    bus.read(EVENTS, "g", "me", count=2)
    lag = bus.lags(EVENTS)["g"]
    assert (lag.undelivered, lag.pending) == (1, 2)
    assert list(bus.lags(EVENTS)) == ["g"]


def test_a_dead_letter_is_written_once_however_often_it_is_buried(bus: Bus) -> None:
    letters = [DeadLetter(EVENTS, "1-0", index, f"reason {index}", b"\x00raw") for index in (0, 1)]
    assert [bus.bury(letters), bus.bury(letters), bus.bury([])] == [2, 0, 0]
    first, second = bus.follow(DEAD, START)
    assert first.fields == {
        "stream": b"events", "entry": b"1-0", "index": b"0", "reason": b"reason 0", "bytes": b"4", "raw": b"\x00raw"
    }  # fmt: skip
    assert second.fields["reason"] == b"reason 1"


def test_a_dead_letter_keeps_the_size_of_what_it_cuts(bus: Bus) -> None:
    bus.bury([DeadLetter(EVENTS, "1-0", -1, "too large", b"x" * 100_000)])
    (letter,) = bus.follow(DEAD, START)
    assert (len(letter.fields["raw"]), letter.fields["bytes"]) == (65_536, b"100000")


def test_a_capped_stream_forgets_its_oldest_entries(bus: Bus) -> None:
    for _ in range(1_000):
        last = bus.publish(SPANS, {"spans": b"x"}, cap=10)
    bounds = bus.bounds(SPANS)
    assert bounds.last == last
    assert 10 <= bounds.length < 500


def test_the_trace_context_is_read_from_its_own_fields(bus: Bus) -> None:
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03"
    bus.publish(EVENTS, {"batch": b"", "traceparent": traceparent.encode()})
    (entry,) = bus.follow(EVENTS, START)
    assert entry.carrier == {"traceparent": traceparent}


def test_an_unknown_stream_is_refused_by_name(bus: Bus) -> None:
    with pytest.raises(ValueError, match=r"stream must be one of events, .*, found 'evnets'"):
        bus.publish("evnets", {"batch": b""})


def test_lag_tells_how_old_the_oldest_is_for_every_group(bus: Bus) -> None:
    for group in ("read", "done", "asleep"):
        bus.join(EVENTS, group)
    (entry, _) = published_ago(bus, 100.0, b"a", b"b")
    for group in ("read", "done"):
        bus.read(EVENTS, group, "me")
    bus.acknowledge(EVENTS, "done", [one.id for one in bus.follow(EVENTS, START)])
    lags = bus.lags(EVENTS)
    assert {name: (lag.undelivered, lag.pending) for name, lag in lags.items()} == {
        "read": (0, 2), "done": (0, 0), "asleep": (2, 0),
    }  # fmt: skip
    assert [lags[name].behind_ms // 10_000 for name in ("read", "done", "asleep")] == [0, 0, 10]
    assert [lags[name].held_ms // 10_000 for name in ("read", "done", "asleep")] == [10, 0, 10]
    assert bus.lags(DECISIONS) == {}
    assert bus.reached(EVENTS, "asleep") == START
    assert id_order(bus.reached(EVENTS, "done")) > id_order(entry)
    assert bus.reached(EVENTS, "nobody") == START


def test_a_group_that_never_acknowledges_is_waited_for_so_long_and_no_longer(bus: Bus) -> None:
    for group in ("dead", "asleep", "alive"):
        bus.join(EVENTS, group)
    ids = publish(bus, b"a", b"b", b"c")
    bus.read(EVENTS, "dead", "it died")
    bus.read(EVENTS, "alive", "me")
    bus.acknowledge(EVENTS, "alive", ids)
    assert seen_from(bus, 50.0, unread_kept_s=60.0).trim(EVENTS, covered=ids[2]) == 0
    assert seen_from(bus, 70.0).trim(EVENTS, covered=ids[2]) == 0
    assert seen_from(bus, 70.0, unread_kept_s=60.0).trim(EVENTS, covered=ids[2]) == 2
    assert has_gap(bus.bounds(EVENTS), bus.reached(EVENTS, "asleep"))


def test_a_group_that_has_read_everything_long_ago_keeps_its_anchor(bus: Bus) -> None:
    bus.join(EVENTS, "quiet")
    ids = publish(bus, b"a")
    bus.read(EVENTS, "quiet", "me")
    bus.acknowledge(EVENTS, "quiet", ids)
    late = seen_from(bus, 70.0, unread_kept_s=60.0)
    assert late.trim(EVENTS, covered="9999999999999-0") == 0


def published_ago(bus: Bus, seconds: float, *batches: bytes) -> list[str]:
    """Entries that came so much earlier by the broker's clock."""
    if isinstance(bus, RedisBus):
        at = int((time.time() - seconds) * 1000)
        for number, batch in enumerate(batches):
            bus._link.once(
                lambda link, batch=batch, number=number: link.xadd(bus._key(EVENTS), {"batch": batch}, f"{at}-{number}")
            )
        return [entry.id for entry in bus.follow(EVENTS, START)]
    return publish(seen_from(bus, -seconds), *batches)


def seen_from(bus: Bus, seconds: float, unread_kept_s: float | None = None) -> Bus:
    """The same streams, as who looks at them so much later sees them."""
    if isinstance(bus, RedisBus):
        kept_s = unread_kept_s - seconds if unread_kept_s is not None else None  # its broker's clock is not moved
        return RedisBus(bus._link, bus._fleet, unread_kept_s=kept_s)
    assert isinstance(bus, MemoryBus)
    later = MemoryBus(bus._fleet, lambda: time.time() + seconds, unread_kept_s=unread_kept_s)
    later._logs = bus._logs
    return later
