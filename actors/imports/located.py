"""The lines of the keys of a YAML text, so that a message can name the line that cannot be honoured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from actors.documents.messages import key_path, shown
from actors.documents.model import Location


def line_of(root: yaml.Node | None, where: Location, *, value: bool = False) -> int:
    """The line of a key or item of a document, from 1; of the nearest one around it if it is not written out.

    ``value``: that of the value of a key instead.
    """
    node, line = root, root.start_mark.line if root is not None else 0
    for step in where:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == step), None)
            if pair is None:
                break
            node, line = pair[1], pair[value].start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return line + 1


class Section(ABC):
    """A part of a document, and where its mistakes are noted."""

    __slots__ = ()

    @abstractmethod
    def refuse(self, where: Location, told: str) -> None:
        """Note that the value at a path cannot be honoured, and why."""

    def items(self, where: Location, found: Any, kind: type) -> Any:
        """A list or mapping, empty if there is none; a value of another type is refused."""
        if found is None or isinstance(found, kind):
            return found or kind()
        self.refuse(where, f"expected a {'list' if kind is list else 'mapping'}, found {found!r}")
        return kind()

    def mappings(self, where: Location, found: Any) -> Iterator[tuple[Location, Mapping[str, Any]]]:
        """The mappings of a list, each with its path."""
        for at, one in enumerate(self.items(where, found, list)):
            yield (*where, at), self.items((*where, at), one, dict)

    def only(self, where: Location, found: Mapping[str, Any], known: Collection[str], expected: str = "") -> None:
        """Refuse the keys of a mapping that are not known; ``expected`` says which are, unless it is one of them."""
        for key in found:
            if key not in known:
                told = expected or f"one of {', '.join(known)}"
                self.refuse((*where, key), f"expected {told}; nothing here reads this")


class Located(Section):
    """One YAML document inside a file, with the mistakes that were found in it so far.

    Parameters
    ----------
    text
        The document. A stricter reader must have read it before, since deep nesting would overflow this parser.
    name
        Name of the file, for messages.
    above
        Number of lines of the file above the document.
    """

    def __init__(self, text: str, name: str, above: int = 0) -> None:
        self._root, self.name, self._above = yaml.compose(text, Loader=yaml.CSafeLoader), name, above
        self._offences: list[tuple[int, str]] = []

    def line(self, where: Location, *, value: bool = False) -> int:
        """The line of a key or item, or of its value; of the nearest key around it if it is not written out."""
        return line_of(self._root, where, value=value) + self._above

    def refuse(self, where: Location, told: str, about: str = "") -> None:
        """Note that the value at a path cannot be honoured, and why; ``about`` is the name of the object, if any."""
        parts = about, key_path(where), told
        self._offences.append((self.line(where), ": ".join(part for part in parts if part)))

    def actions(self, found: Any, known: Sequence[str], such_as: str) -> list[str]:
        """The actions that a configuration lists, separated by commas; those that are not known are refused."""
        if not isinstance(found, str) or not found.strip():
            self.refuse(("actions",), f"expected actions, such as '{such_as}', found {shown(found)}")
            return []
        actions = [action.strip() for action in found.split(",")]
        for action in actions:
            if action not in known:
                self.refuse(("actions",), f"expected some of {', '.join(known)}, found {action!r}")
        return actions

    def sentences(self) -> list[str]:
        """The mistakes that were noted, in the order of the lines."""
        return [f"{self.name}, line {line}: {told}" for line, told in sorted(self._offences)]


@dataclass(frozen=True, slots=True)
class LocatedPart(Section):
    """An object or a section of a document. Its mistakes are noted there, with its path and name, if it has one."""

    document: Located
    here: Location = ()
    name: str = ""

    def refuse(self, where: Location, told: str) -> None:
        """Note that the value at a path inside the part cannot be honoured, and why."""
        self.document.refuse((*self.here, *where), told, self.name)
