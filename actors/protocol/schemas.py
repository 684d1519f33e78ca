"""JSON Schema of every kind, for connectors in other languages; ``clearway schema`` writes it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from actors.cluster_file.documents import ClusterDocument
from actors.protocol.bodies import DECISION_KINDS, EVENT_KINDS, VERSION, Number

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """One schema: an envelope of any kind; under ``$defs`` each kind's body, and the documents that bodies hold."""
    kinds = {**EVENT_KINDS, **DECISION_KINDS}
    models: list[type[BaseModel]] = sorted({*kinds.values(), ClusterDocument}, key=lambda model: model.__name__)
    names, found = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/$defs/{model}", title="Clearway stream protocol"
    )
    documents = _open(found["$defs"])
    # A part of a list is a piece of a cluster file: of what it must have, other parts may have all.
    documents["FleetListed"]["properties"]["cluster"] = {"$ref": "#/$defs/ClusterDocument"}
    documents["ClusterDocument"].pop("required", None)
    return {
        "$schema": _DIALECT, "title": "Clearway stream protocol, version 1",
        "oneOf": [_envelope(kind, names[model, "validation"]["$ref"]) for kind, model in kinds.items()],
        "$defs": documents,
    }  # fmt: skip


def _envelope(kind: str, body: str) -> dict[str, Any]:
    return {
        "type": "object", "required": ["version", "uid", "kind", "revision", "body"],
        "properties": {
            "version": {"const": VERSION}, "kind": {"const": kind}, "body": {"$ref": body},
            "uid": {"type": "string", "minLength": 1, "maxLength": 512},
            "revision": TypeAdapter(Number).json_schema(),
            "traceparent": {"type": "string", "maxLength": 128},
        },
    }  # fmt: skip


def _open(schemas: Any) -> Any:
    """The same, but keys that are not known pass, as they do on the wire."""
    if isinstance(schemas, dict):
        return {
            key: _open(value)
            for key, value in schemas.items()
            if not (key == "additionalProperties" and value is False)
        }
    return [_open(one) for one in schemas] if isinstance(schemas, list) else schemas
