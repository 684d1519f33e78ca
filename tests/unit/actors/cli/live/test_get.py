"""What `get` and `export` say of a live fleet, read without a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from actors.broker.bus import DECISIONS, EVENTS, STREAMS
from actors.broker.memory_bus import MemoryBus
from actors.cli.live import get
from actors.cli.live.reading import Looked
from actors.cli.live.tables import COLUMNS, OF_STATE, OF_STREAMS, table
from actors.cli.live.top import lasting, screen
from actors.cluster_file.reader import read_cluster
from actors.columns.compile import compile_cluster
from actors.configuration.settings import Settings
from actors.ingestion.exported import cluster_document
from actors.ingestion.spectating import NotListed, Onlooker
from actors.protocol.envelopes import Outgoing
from actors.protocol.presence import Presence, StreamLag, announce
from actors.search.pending_reasons import waiting
from pipeline.cluster.tables import GONE
from tests.support.assembly import Assembly, Clock, full, gang, rack_cluster

FILES = sorted((Path(__file__).parents[5] / "config" / "examples").glob("*.yaml"))
EXAMPLES = [path for path in FILES if "node_classes" not in path.read_text()]  # else it is an inventory


@pytest.fixture
def assembly() -> Assembly:
    """Two racks of four nodes that are full, a gang whose victims are ending, and one that waits."""
    made = full()
    made.submit(gang("big", 2, 8, priority=5, topology={"required": "rack"}))
    made.submit(gang("wide", 5, 8, priority=3, topology={"required": "rack"}))
    made.cycle()
    made.obey()
    made.hear()
    return made


def seen(assembly: Assembly) -> Onlooker:
    return Onlooker(Settings(fleet="test"), assembly.bus, now_s=assembly.clock)


def rows(assembly: Assembly, kind: str) -> list[dict]:
    if kind in OF_STREAMS:
        return list(OF_STREAMS[kind](assembly.bus))
    return list(OF_STATE[kind](seen(assembly).state(), waiting(assembly.bus)))


def test_who_looks_sees_the_state_and_leaves_no_trace(assembly: Assembly) -> None:
    before = {stream: (assembly.bus.bounds(stream), assembly.bus.lags(stream)) for stream in STREAMS}
    state = seen(assembly).state()
    ours = assembly.ingest.ingestor.state
    assert state.names.tasks == ours.names.tasks
    np.testing.assert_array_equal(state.snapshot.tasks.status, ours.snapshot.tasks.status)
    assert {stream: (assembly.bus.bounds(stream), assembly.bus.lags(stream)) for stream in STREAMS} == before


def test_a_fleet_that_has_not_listed_has_no_state_and_is_not_said_to_be_asked(caplog: pytest.LogCaptureFixture) -> None:
    bus = MemoryBus("test", Clock())
    with pytest.raises(NotListed, match="fleet test: no state can be seen before the fleet lists what it has"):
        Onlooker(Settings(fleet="test"), bus, now_s=Clock()).state()
    assert bus.bounds(DECISIONS).added == bus.bounds(EVENTS).added == 0
    assert caplog.text == ""


def test_queues_say_what_they_deserve_hold_and_who_waits(assembly: Assembly) -> None:
    first, second = rows(assembly, "queues")
    assert (first["name"], first["state"], first["deserved"]) == ("a", "Open", {"gpu": 32})
    assert first["held"]["gpu"] == 64
    assert (first["waiting"], second["waiting"]) == (4, 0), "two that want room, and two that are about to lose it"
    assert first["oldest_wait"] == assembly.clock.now


def test_gangs_say_why_and_since_when_they_wait(assembly: Assembly) -> None:
    found = {one["name"]: one for one in rows(assembly, "gangs")}
    assert found["default/low7"]["reason"] is None
    wide = found["default/wide"]
    assert (wide["reason"], wide["since"], wide["ready"], wide["minimum"]) == (
        "NotEnoughResources", assembly.clock.now, 0, 5,
    )  # fmt: skip


def test_nodes_reservations_and_decisions_are_listed(assembly: Assembly) -> None:
    found = rows(assembly, "nodes")
    assert [one["name"] for one in found] == [f"n{at}" for at in range(8)]
    assert found[0]["allocatable"]["gpu"] == 8
    (held,) = rows(assembly, "reservations")
    assert (held["podgroup"], held["tasks"], held["victims"]) == ("default/big", 2, 2)
    made = rows(assembly, "decisions")
    assert [(one["podgroup"], one["evicts"], one["end"]) for one in made] == [("default/big", 2, None)]
    assembly.turns(12)
    assert rows(assembly, "reservations") == []


def test_services_are_listed_with_what_keeps_them_from_their_work() -> None:
    bus = MemoryBus("test", Clock())
    told = {"owner": "one", "host": "h", "process": 1, "version": "1", "state": "waits", "ready": False}
    announce(bus, Presence.model_validate({**told, "why": "no fleet", "shadow": True}))
    (one,) = OF_STREAMS["services"](bus)
    assert (one["owner"], one["state"], one["why"]) == ("one", "waits", "no fleet")
    assert dict(zip(*(line.split() for line in table(("owner", "shadow"), [one])), strict=True))["SHADOW"] == "yes"


def test_a_table_is_aligned_under_its_heads(assembly: Assembly) -> None:
    head, first, second = table(COLUMNS["queues"], rows(assembly, "queues"))
    assert head.split() == ["NAME", "STATE", "HELD/DESERVED", "WAITING", "OLDEST", "WAIT"]
    assert first.index("gpu 64/32") == head.index("HELD") == second.index("gpu 0/32")
    assert first.endswith("4        2023-11-14 22:13:20+00:00")
    for kind in (*OF_STATE, *OF_STREAMS):
        assert next(table(COLUMNS[kind], rows(assembly, kind)))


@pytest.mark.parametrize("cluster", EXAMPLES, ids=lambda path: path.stem)
def test_whatever_is_listed_is_exported_as_it_is(cluster: Path) -> None:
    assert_exported_as_it_is(yaml.safe_load(cluster.read_text()))


def test_anti_affinity_is_exported_with_expressions_and_namespaces() -> None:
    document = yaml.safe_load(EXAMPLES[0].read_text())
    document["podgroups"][0]["tasks"][0]["pod_anti_affinity"] = [
        {"topology_key": "zone", "match_expressions": [{"key": "app", "operator": "NotIn", "values": ["x", "a"]}]},
        {"topology_key": "zone", "match_labels": {"app": "x"}, "namespaces": ["other", "*"]},
    ]
    assert_exported_as_it_is(document)


def assert_exported_as_it_is(document: dict[str, Any]) -> None:
    document.pop("policy", None)
    assembly = Assembly(rack_cluster())
    assembly.say(
        [Outgoing("fleet_listed", "fleet", 10**9, {"list_id": "x", "part": 0, "parts": 1, "cluster": document})]
    )
    assembly.hear()
    state = seen(assembly).state()
    exported = cluster_document(state, float(document.get("now", 0.0)))
    first = compile_cluster(read_cluster(document))[0]
    second, names = compile_cluster(read_cluster(exported))
    assert names.tasks == tuple(state.names.tasks)
    for part in ("tasks", "podgroups", "roles", "subgroups", "nodes", "queues", "budgets", "shapes"):
        for key in getattr(first, part).__dataclass_fields__:
            if key not in ("revision", "alive"):
                mine, theirs = getattr(getattr(second, part), key), getattr(getattr(first, part), key)
                np.testing.assert_array_equal(mine, theirs, err_msg=f"{part}.{key}")
    assert second.vocabulary.constraints == first.vocabulary.constraints


def test_the_export_compiles_to_the_same_columns(assembly: Assembly) -> None:
    state = seen(assembly).state()
    document = cluster_document(state, assembly.clock.now)
    text = yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False)
    snapshot, names = compile_cluster(read_cluster(yaml.safe_load(text)))
    ours = state.snapshot
    there = np.flatnonzero(ours.tasks.status != GONE)
    assert names.tasks == tuple(state.names.tasks[row] for row in there.tolist())
    for key in ("status", "node", "nominated", "priority", "preemptible", "may_preempt", "incarnation", "index"):
        np.testing.assert_array_equal(getattr(snapshot.tasks, key), getattr(ours.tasks, key)[there], err_msg=key)
    np.testing.assert_array_equal(snapshot.request, ours.request[there])
    for key in ("min_available", "queue", "phase", "required_level"):
        np.testing.assert_array_equal(getattr(snapshot.podgroups, key), getattr(ours.podgroups, key), err_msg=key)
    np.testing.assert_array_equal(snapshot.room.idle, ours.room.idle)
    np.testing.assert_array_equal(snapshot.queues.deserved, ours.queues.deserved)


@pytest.fixture
def command(assembly: Assembly, monkeypatch: pytest.MonkeyPatch) -> Assembly:
    @contextmanager
    def reading(settings: Settings, command: str) -> Iterator[Looked]:
        del settings, command
        yield Looked(assembly.bus, assembly.clock)

    monkeypatch.setattr(get, "reading", reading)
    return assembly


@pytest.mark.parametrize("output", get.FORMATS)
def test_every_kind_is_given_in_every_format(
    command: Assembly, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del command
    read = {"json": json.loads, "yaml": yaml.safe_load, "table": str.splitlines}[output]
    for kind in ("queues", "gangs", "nodes", "reservations", "decisions"):
        assert get.run(Settings(fleet="test"), kind, output=output, count=None, name=None) == 0
        assert read(capsys.readouterr().out)
    assert get.run(Settings(fleet="test"), "gangs", output=output, count=None, name="default/nobody") == 1


@pytest.mark.parametrize("name", ["default/wide", "wide"])
def test_a_gang_is_found_by_its_name_with_or_without_the_namespace(
    command: Assembly, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del command
    assert get.run(Settings(fleet="test"), "gangs", output="json", count=None, name=name) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["default/wide"]


def test_the_export_is_a_file_that_simulate_reads_and_its_time_is_the_brokers(
    command: Assembly, tmp_path: Path
) -> None:
    assert get.export(Settings(fleet="test"), tmp_path / "out.yaml") == 0
    document = yaml.safe_load((tmp_path / "out.yaml").read_text())
    read_cluster(document)
    assert document["now"] == command.clock()


def test_top_shows_services_queues_what_waits_and_reservations(assembly: Assembly) -> None:
    lag = {"events/ingestor": StreamLag(entries=3, seconds=0.25), "decisions/fleet": StreamLag()}
    announce(assembly.bus, Presence(owner="one", host="h", process=1, version="1", state="leads", ready=True, lag=lag))
    lines = list(screen("test", assembly.bus, seen(assembly).state(), 24, assembly.clock()))
    assert lines[0].startswith("fleet test   ")
    assert lines[1] == "lag: events/ingestor 3 entries, 0.2 s; decisions/fleet 0 entries, 0.0 s"
    text = "\n".join(lines)
    for part in ("OWNER", "leads", "HELD/DESERVED", "gpu 64/32", "default/wide", "NotEnoughResources", "VICTIMS"):
        assert part in text, part
    assert "and " in "\n".join(screen("test", assembly.bus, seen(assembly).state(), 4, assembly.clock())), (
        "what does not fit is counted"
    )


def test_eighty_columns_are_enough_for_what_waits_why_and_how_long(assembly: Assembly) -> None:
    assembly.clock.now += 90.0
    lines = [line[:80] for line in screen("test", assembly.bus, seen(assembly).state(), 40, assembly.clock())]
    (waiting,) = (line for line in lines if line.startswith("default/wide"))
    assert waiting.split() == ["default/wide", "0/5", "NotEnoughResources", "2", "min", "3", "a", "PreSche"]
    (promised,) = (line for line in lines if line.startswith("default/big") and " r0 " in line)
    assert promised.split()[1:] == ["r0", "2", "2", "2", "min", "4", "min", "1"]


@pytest.mark.parametrize(("seconds", "said"), [(-1, "0 s"), (59.4, "59 s"), (60, "1 min"), (5400, "1.5 h")])
def test_a_duration_is_said_in_the_unit_that_fits_it(seconds: float, said: str) -> None:
    assert lasting(seconds) == said
