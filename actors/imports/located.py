"""Where the keys of a YAML text stand, so that a line that cannot be honoured can be named."""

from __future__ import annotations

import yaml

from actors.documents.messages import key_path
from actors.documents.model import Location


class Located:
    """One YAML document inside a file, and what is wrong with it as far as it was read.

    Parameters
    ----------
    text
        The document; a reader that refuses what could overflow this one has read it before.
    name
        Of the file.
    above
        How many lines of the file stand above it.
    """

    def __init__(self, text: str, name: str, above: int = 0) -> None:
        self._root, self._name, self._above = yaml.compose(text, Loader=yaml.CSafeLoader), name, above
        self._offences: list[tuple[int, str]] = []

    def line(self, where: Location, *, value: bool = False) -> int:
        """The line of a key or item (of its value, if asked); of the nearest one around it that is written out."""
        node, line = self._root, 1
        for step in where:
            if isinstance(node, yaml.MappingNode):
                pair = next((pair for pair in node.value if pair[0].value == step), None)
                if pair is None:
                    break
                node, line = pair[1], pair[value].start_mark.line + 1
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                node = node.value[step]
                line = node.start_mark.line + 1
        return line + self._above

    def refuse(self, where: Location, told: str) -> None:
        """Note that what stands there cannot be honoured."""
        self._offences.append((self.line(where), f"{key_path(where)}: {told}"))

    def sentences(self) -> list[str]:
        """What is wrong, in the order of the lines."""
        return [f"{self._name}, line {line}: {told}" for line, told in sorted(self._offences)]
