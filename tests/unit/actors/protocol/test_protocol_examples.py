"""docs/protocol.md is true: every kind has an example, and every example is read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgpack
import pytest
from jsonschema import Draft202012Validator

from actors.broker.bus import DECISIONS, EVENTS, Entry
from actors.cluster_file.documents import (
    CardDocument,
    ClusterDocument,
    DisruptionBudgetDocument,
    DomainDocument,
    ExpectDocument,
    GatheredLevels,
    NodeDocument,
    PodgroupDocument,
    PriorityClassDocument,
    QueueDocument,
    RecentEvictionsDocument,
    RoleDocument,
    SubgroupDocument,
    TaintDocument,
    TopologyDocument,
)
from actors.cluster_file.task_documents import (
    AntiAffinityDocument,
    RequirementDocument,
    TaskDocument,
    TolerationDocument,
)
from actors.protocol.bodies import DECISION_KINDS, EVENT_KINDS
from actors.protocol.envelopes import Message, decode_decisions, decode_events
from actors.protocol.schemas import schema
from pipeline.policy import Purpose

PAGE = (Path(__file__).parents[4] / "docs" / "protocol.md").read_text(encoding="utf-8")
EXAMPLES = [
    (family, json.loads(text)) for family, text in re.findall(r"```json (event|decision)\n(.*?)```", PAGE, re.S)
]


@pytest.mark.parametrize(
    ("family", "example"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else value["kind"]
)
def test_the_example_is_read(family: str, example: dict) -> None:
    stream, decode = (EVENTS, decode_events) if family == "event" else (DECISIONS, decode_decisions)
    (message,) = decode(Entry(stream, "1-0", {"batch": msgpack.packb([example])}))
    assert isinstance(message, Message), message
    assert (message.kind, message.uid, message.revision) == (example["kind"], example["uid"], example["revision"])


def test_every_kind_has_an_example() -> None:
    shown = {
        family: list(dict.fromkeys(example["kind"] for of, example in EXAMPLES if of == family))
        for family in ("event", "decision")
    }
    assert shown == {"event": list(EVENT_KINDS), "decision": list(DECISION_KINDS)}


def test_every_key_of_every_document_is_named() -> None:
    (section,) = re.findall(r"## Documents\n(.*?)\n## ", PAGE, re.S)
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.*) \|$", section, re.M))
    models = {
        "cluster file": (ClusterDocument,), "expect": (ExpectDocument,),
        "node": (NodeDocument, TaintDocument, CardDocument), "topology": (TopologyDocument, DomainDocument),
        "queue": (QueueDocument,), "priority class": (PriorityClassDocument,), "budget": (DisruptionBudgetDocument,),
        "podgroup": (PodgroupDocument, RoleDocument, SubgroupDocument, GatheredLevels),
        "recent evictions": (RecentEvictionsDocument,),
        "task": (TaskDocument, TolerationDocument, RequirementDocument, AntiAffinityDocument),
    }  # fmt: skip
    assert rows.keys() - {"document"} == models.keys()
    for name, documents in models.items():
        named = set(re.findall(r"`([a-z_]+)`", rows[name]))
        must = set(re.findall(r"\*\*`([a-z_]+)`\*\*", rows[name]))
        fields = {key: field for document in documents for key, field in document.model_fields.items()}
        assert named == fields.keys() | ({"pods"} if name == "node" else set()), name
        required = {
            key for document in documents for key, field in document.model_fields.items() if field.is_required()
        }
        assert must == required, name


SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "protocol.schema.json").read_text(encoding="utf-8"))


def test_the_schema_beside_the_page_is_that_of_the_program() -> None:
    assert schema() == SCHEMA, "clearway schema > docs/protocol.schema.json"


@pytest.mark.parametrize(
    ("family", "example"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else value["kind"]
)
def test_the_example_fits_the_schema_and_another_body_does_not(family: str, example: dict) -> None:
    del family
    fits = Draft202012Validator(SCHEMA)
    assert list(fits.iter_errors(example)) == []
    assert list(fits.iter_errors({**example, "kind": "unknown"}))
    assert list(fits.iter_errors({**example, "version": 2}))
    assert not list(fits.iter_errors({**example, "a key of a later version": 1}))


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("node_upserted", {"allocatable": {"cpu": -1}}),
        ("queue_upserted", {"deserved": {"cpu": -0.5}}),
        ("queue_upserted", {"over_quota_weight": -1}),
        ("queue_upserted", {"usage": {"cpu": -1}}),
        ("node_upserted", {}),
    ],
)
def test_the_schema_refuses_what_the_program_refuses_of_numbers(kind: str, changed: dict) -> None:
    example = next(one for _, one in EXAMPLES if one["kind"] == kind)
    wrong = {**example, "body": {**example["body"], **changed}}
    if not changed:
        wrong["revision"] = 2**63
    assert list(Draft202012Validator(SCHEMA).iter_errors(wrong))


def test_the_purposes_of_the_page_are_those_of_the_program() -> None:
    (table,) = re.findall(r"\| `purpose` \|[^\n]*\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.M) == [purpose.value for purpose in Purpose]
    shown = {example["body"]["purpose"] for of, example in EXAMPLES if "purpose" in example["body"]}
    assert shown <= {purpose.value for purpose in Purpose}
