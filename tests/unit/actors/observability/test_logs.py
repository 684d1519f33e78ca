"""The log: lines kept by a role, written by the process that watches it."""

import errno
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Literal

import pytest

from actors.configuration.settings import TelemetrySettings
from actors.observability.logs import KeptLines, Line, Seldom, Written, keep_log, line_text, unsaid, write_log
from actors.observability.telemetry import start

LINE = Line(1_700_000_000.25, "INFO", "committer", "evict for ml/a: evicts 2", {"plan": "p1", "trace_id": "ab"})


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    made = logging.getLogger("tests.logs")
    made.setLevel(logging.DEBUG)
    yield made
    made.handlers.clear()


@pytest.fixture
def restored() -> Iterator[None]:
    """The log of this process is as it was once the test has written one of its own."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def test_each_line_is_given_once_to_who_asks_in_order(logger: logging.Logger) -> None:
    kept = KeptLines("ingestor")
    logger.addHandler(kept)
    logger.info("one of %d", 2)
    number, first = kept.since(0)
    logger.warning("two", extra={"podgroup": "ml/a"})
    number, second = kept.since(number)
    assert [(line.role, line.level, line.message) for line in first + second] == [
        ("ingestor", "INFO", "one of 2"), ("ingestor", "WARNING", "two"),
    ]  # fmt: skip
    assert second[0].said == {"podgroup": "ml/a"}
    assert kept.since(number) == (number, [])


def test_lines_that_were_not_kept_are_counted(logger: logging.Logger) -> None:
    kept = KeptLines("ingestor", kept=2)
    logger.addHandler(kept)
    for at in range(5):
        logger.info("line %d", at)
    number, lines = kept.since(1)
    assert number == 5
    assert [line.message for line in lines] == ["2 lines were not kept", "line 3", "line 4"]


def test_a_process_that_began_anew_tells_all_that_it_has_said(logger: logging.Logger) -> None:
    kept = KeptLines("ingestor")
    logger.addHandler(kept)
    logger.info("anew")
    assert [line.message for line in kept.since(17)[1]] == ["anew"]


def test_a_line_bears_the_trace_in_which_it_was_said(logger: logging.Logger) -> None:
    kept, telemetry = KeptLines("committer"), start(TelemetrySettings(), "committer")
    logger.addHandler(kept)
    with telemetry.span("record"):
        logger.info("inside")
        carrier = telemetry.carrier()["traceparent"]
    logger.info("outside")
    telemetry.stop()
    _, (inside, outside) = kept.since(0)
    assert inside.said["trace_id"] in carrier
    assert "trace_id" not in outside.said


def test_text_names_time_role_level_and_what_it_is_about() -> None:
    expected = "2023-11-14T22:13:20.250Z committer INFO evict for ml/a: evicts 2 plan=p1 trace_id=ab"
    assert line_text(LINE, "demo", "text") == expected


def test_json_is_one_object_a_line() -> None:
    assert json.loads(line_text(LINE, "demo", "json")) == {
        "time": "2023-11-14T22:13:20.250Z", "level": "info", "fleet": "demo", "role": "committer",
        "message": "evict for ml/a: evicts 2", "plan": "p1", "trace_id": "ab",
    }  # fmt: skip


def test_an_exception_is_part_of_its_line(logger: logging.Logger) -> None:
    kept = KeptLines("searcher-0")
    logger.addHandler(kept)
    try:
        raise ValueError("why")
    except ValueError:
        logger.exception("the loop failed")
    assert kept.since(0)[1][0].message.endswith("ValueError: why")


def test_what_is_below_the_level_is_not_written(logger: logging.Logger) -> None:
    out = io.StringIO()
    handler = Written("run", "demo", "text", out)
    handler.setLevel("WARNING")
    logger.addHandler(handler)
    logger.info("own, too low")
    logger.error("own")
    handler.write(LINE)
    assert [line.split(" ", 1)[1] for line in out.getvalue().splitlines()] == ["run ERROR own"]


def test_a_log_that_cannot_be_written_ends_nothing_and_goes_on_once_it_can(logger: logging.Logger) -> None:
    class Disk(io.StringIO):
        full = True

        def flush(self) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")

    disk = Disk()
    handler = Written("run", "demo", "text", disk)
    logger.addHandler(handler)
    logger.error("while it is full")
    handler.write(LINE)
    disk.full = False
    logger.error("once it is not")
    assert disk.getvalue().endswith("once it is not\n")


def test_a_process_whose_standard_error_was_closed_goes_on_without_a_log(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger.addHandler(Written("run", "demo", "text"))
    monkeypatch.setattr(sys, "stderr", None)
    logger.error("nobody hears this")


@pytest.mark.usefixtures("restored")
def test_what_a_rehearsal_logs_is_not_said_and_what_others_log_meanwhile_is() -> None:
    out, log = io.StringIO(), logging.getLogger("actors.commit")
    write_log("run", "demo", "text", "info", out)
    with unsaid():
        log.warning("preempt for nothing real")
        other = threading.Thread(target=log.warning, args=("preempt for the fleet",))
        other.start()
        other.join()
    log.warning("afterwards")
    said = [line.split("WARNING ")[1] for line in out.getvalue().splitlines()]
    assert said == ["preempt for the fleet", "afterwards"]


def test_what_opentelemetry_complains_of_is_written_once_a_minute() -> None:
    passes = Seldom()

    def passed(name: str, at_s: float, message: str = "Failed to export %s") -> bool:
        record = logging.LogRecord(name, logging.ERROR, "", 0, message, ("traces",), None)
        record.created = at_s
        return passes.filter(record)

    exporter, ours = "opentelemetry.exporter.otlp.proto.grpc.exporter", "actors.commit.committer"
    assert [passed(exporter, at_s) for at_s in (100.0, 108.0, 159.0, 161.0, 170.0)] == [True, False, False, True, False]
    assert passed(exporter, 171.0, "another of %s")
    assert passed(exporter, 90.0)  # a clock that was set back silences nothing
    assert passed(ours, 171.0)
    assert passed(ours, 171.0)


@pytest.mark.usefixtures("restored")
def test_both_ways_to_log_leave_out_what_opentelemetry_repeats() -> None:
    out = io.StringIO()
    write_log("run", "prod", "text", "info", out)
    for _ in range(3):
        logging.getLogger("opentelemetry.exporter.test").error("away")
    kept = keep_log("ingestor", "info")
    for _ in range(3):
        logging.getLogger("opentelemetry.exporter.test").error("away")
    assert out.getvalue().count("away") == 1
    assert [line.message for line in kept.since(0)[1]] == ["away"]


@pytest.mark.parametrize("shape", ["text", "json"])
def test_a_name_cannot_write_a_line_of_its_own(logger: logging.Logger, shape: Literal["text", "json"]) -> None:
    out = io.StringIO()
    logger.addHandler(Written("committer", "prod", shape, out))
    name = "a\n2026-11-22T09:01:12.250Z committer INFO \x1b[2J\u2028b"
    logger.info("preempt for %s", name, extra={"podgroup": name})
    (line,) = out.getvalue().splitlines()
    assert "\x1b" not in line
    logger.error("failed", exc_info=ValueError("x"))
    assert "failed" in out.getvalue().splitlines()[1]
    if shape == "text":  # a traceback keeps its lines
        assert out.getvalue().splitlines()[2] == "ValueError: x"
