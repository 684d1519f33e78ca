"""References to arguments need not be counted: the caller of a function keeps them until the function returns.

Numba counts a reference each time that an array is taken out of an argument, with two atomic instructions, in every
round of a loop. Its own pass removes counts that it finds in pairs; among branches it finds few of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from llvmlite import binding as llvm

#: A count of references to an argument.
_COUNT = re.compile(r" *(?:tail )?call void @NRT_(?:in|de)cref\(ptr (?:[\w()]+ )*(%arg\.[\w.$-]+)\)")
_ARGUMENT = re.compile(r"%arg\.[\w.$-]+")
#: What is given to another function stays with its owner.
_GIVEN = re.compile(r" *(?:%\S+ = )?(?:tail )?(?:call|invoke) ")


def uncounted(module: Any) -> Any:
    """A module of LLVM, whose variables are values, without counts of references to arguments.

    Of arguments that are kept beyond the function (returned, stored or chosen among others) all counts stay.
    """
    text = str(module)
    made = llvm.parse_assembly("\n".join(_without_counts(text.split("\n"))))
    made.name = module.name
    return made


def _without_counts(lines: list[str]) -> Iterator[str]:
    begin = 0
    for at, line in enumerate(lines):
        if line == "}":  # the end of a function
            yield from _uncounted_function(lines[begin : at + 1])
            begin = at + 1
    yield from lines[begin:]


def _uncounted_function(lines: list[str]) -> Iterator[str]:
    body = next((at for at, line in enumerate(lines) if line.startswith("define ")), 0) + 1
    counted = [_COUNT.match(line) for line in lines]
    kept = {
        name
        for line, count in zip(lines[body:], counted[body:], strict=True)
        if count is None and not _GIVEN.match(line)
        for name in _ARGUMENT.findall(line)
    }
    return (line for line, count in zip(lines, counted, strict=True) if count is None or count[1] in kept)
