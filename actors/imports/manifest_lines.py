"""Findings in manifests as sentences that name the line."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import yaml

from actors.documents.bounded_files import text_of
from actors.documents.messages import key_path
from actors.documents.model import Location
from actors.imports.fields import Finding, Manifest
from actors.imports.manifest_files import ELIDED

#: Messages name lines in files up to this size; for larger files they name the path only.
_LINES_BYTES = 16 << 20


def sentence(finding: Finding) -> str:
    """A finding as a sentence: file, line, object, path, and the remark."""
    manifest = finding.manifest
    line = _line(manifest, finding.where)
    place = f"{manifest.file}, line {line}" if line else manifest.file
    parts = [place, manifest.name, key_path(finding.where), finding.told]
    return ": ".join(part for part in parts if part)


def _line(manifest: Manifest, where: Location) -> int | None:
    """The line of a field, or of the nearest field around it that is written out; None if it is not known."""
    roots = _roots(manifest.file)
    if manifest.kind == "" or manifest.document >= len(roots):
        return None
    node: yaml.Node | None = roots[manifest.document]
    line = node.start_mark.line if node is not None else 0
    for step in (*manifest.inside, *where):
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == step), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return line + 1


@lru_cache(maxsize=64)
def _roots(file: str) -> tuple[yaml.Node, ...]:
    """The documents of a file with their lines; empty if the file is too large for that."""
    try:
        text = text_of(Path(file), _LINES_BYTES)
        # The cluster file reader has already refused text that could overflow this parser.
        composed = yaml.compose_all(ELIDED.sub("", text), Loader=yaml.CSafeLoader)
        return tuple(node for node in composed if node.tag != "tag:yaml.org,2002:null")
    except (OSError, ValueError, yaml.YAMLError):
        return ()
