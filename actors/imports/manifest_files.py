"""Manifests from files and folders: YAML streams, JSON, and the lists that ``kubectl get -o yaml`` writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from actors.cluster_file.plain_data import ClusterFileRefused, read_mappings, text_to_read
from actors.documents.bounded_files import text_of
from actors.documents.messages import key_path
from actors.documents.model import Location
from actors.imports.fields import Finding, Manifest
from actors.imports.located import line_of

_SUFFIXES = (".yaml", ".yml", ".json")
#: Messages name lines in files up to this size; for larger files they name the path only.
_LINES_BYTES = 16 << 20
_MOST_FILES = 100_000
#: Documentation pages write three dots for what they leave out; in YAML that would end the document.
_ELIDED = re.compile(r"(?m)^[ \t]+\.\.\.[ \t]*$")


def read_manifests(paths: Sequence[Path], known: Mapping[Path, str]) -> tuple[list[Manifest], list[Finding]]:
    """Read the objects of files, and of all YAML and JSON files in folders, in the order of the file names.

    Parameters
    ----------
    known
        Texts of files that were read before.

    Returns
    -------
    The objects, and a finding for each piece of the files that was passed over.

    Raises
    ------
    ClusterFileRefused
        If a file cannot be read, if something in it is not an object of an API, or if all files are empty.
    """
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    files, empty = _files(paths), True
    for file in files:
        text = known[file] if file in known else text_to_read(file)
        for elided in _ELIDED.finditer(text):
            line = text.count("\n", 0, elided.start()) + 1
            whole = Manifest(str(file), 0, (), "", "", {})
            findings.append(Finding(whole, (), f"line {line}: ... stands for something that is not there", False))
        for at, document in enumerate(read_mappings(_ELIDED.sub("", text), str(file))):
            manifests += _objects(str(file), at, (), document)
            empty = False
    if empty:
        raise ClusterFileRefused(f"{', '.join(map(str, files[:3]))}: expected objects of an API, found none")
    return manifests, findings


def is_manifests(text: str) -> bool:
    """Whether a text says ``kind`` at its top, as manifests do and cluster files do not."""
    if text.lstrip().startswith("{"):
        return re.search(r'"kind"\s*:', text[:4096]) is not None and '"apiVersion"' in text[:4096]
    return re.search(r"(?m)^kind\s*:", text) is not None


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        if not inside:
            raise ClusterFileRefused(f"{path}: expected a folder with {', '.join(_SUFFIXES)} files, found none")
        found += inside
    if len(found) > _MOST_FILES:
        raise ClusterFileRefused(f"expected at most {_MOST_FILES} files, found {len(found)}")
    return list(dict.fromkeys(found))


def _objects(file: str, at: int, inside: Location, body: Mapping[str, Any]) -> Iterator[Manifest]:
    kind, version = body.get("kind"), body.get("apiVersion")
    here = f"{file}: {key_path(inside)}: " if inside else f"{file}: document {at + 1}: "
    if not isinstance(kind, str) or not kind or not isinstance(version, str):
        alone = "; a cluster file is given alone" if "version" in body else ""
        raise ClusterFileRefused(
            f"{here}expected an object with apiVersion and kind, found keys {', '.join(body)[:80]}{alone}"
        )
    items = body.get("items")
    if kind.endswith("List") and isinstance(items, list):
        for position, item in enumerate(items):
            if not isinstance(item, dict):
                raise ClusterFileRefused(f"{here}items[{position}]: expected a mapping")
            # Items of a typed list need not state their kind.
            said = {"apiVersion": version, "kind": kind.removesuffix("List")} | item
            yield from _objects(file, at, (*inside, "items", position), said)
        return
    yield Manifest(file, at, inside, version.rpartition("/")[0], kind, body)


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
    return line_of(roots[manifest.document], (*manifest.inside, *where))


@lru_cache(maxsize=64)
def _roots(file: str) -> tuple[yaml.Node, ...]:
    """The documents of a file with their lines; empty if it is too large for that, or a pipe, which is read once."""
    if not Path(file).is_file():
        return ()
    try:
        text = text_of(Path(file), _LINES_BYTES)
        # The cluster file reader has already refused text that could overflow this parser.
        composed = yaml.compose_all(_ELIDED.sub("", text), Loader=yaml.CSafeLoader)
        return tuple(node for node in composed if node.tag != "tag:yaml.org,2002:null")
    except (OSError, ValueError, yaml.YAMLError):
        return ()
