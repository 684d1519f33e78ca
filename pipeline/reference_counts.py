"""References to arguments need not be counted: the caller of a function keeps them until the function returns.

Numba counts a reference each time that an array is taken out of an argument, with two atomic instructions, in every
round of a loop. Its own pass removes counts that it finds in pairs; among branches it finds few of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from llvmlite import binding as llvm

_NAME = re.compile(r"%(?:[\w.$-]+|\"[^\"]*\")")
#: Arguments, and nothing: what no function owns.
_LENT = re.compile(r"%arg\.|null")
_COUNT = re.compile(rf" *(?:tail )?call void @NRT_(?:in|de)cref\(ptr (?:[\w()]+ )*({_NAME.pattern}|null)\)")
#: What is given to another function stays with its owner.
_GIVEN = re.compile(r" *(?:%\S+ = )?(?:tail )?(?:call|invoke) (?!.*@NRT_(?:in|de)cref\()")
#: A value that is chosen among others, by where control comes from or by a condition, and these.
_CHOICE = re.compile(rf" *({_NAME.pattern}) = (?:phi ptr|select i1 \S+,)( .*)")
_CHOSEN = re.compile(rf"(?:\[ |ptr )({_NAME.pattern})")


def uncounted(module: Any) -> Any:
    """A module of LLVM, whose variables are values, without counts of references to arguments.

    Of arguments that are kept beyond the function (returned or stored) all counts stay, and of those that are chosen
    among values which the function owns.
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
    counts, choices = ([what.match(line) for line in lines] for what in (_COUNT, _CHOICE))
    chosen = {one[1]: set(_CHOSEN.findall(one[2])) for one in choices if one is not None}
    other = [
        line
        for line, *known in zip(lines[body:], counts[body:], choices[body:], strict=True)
        if not any(known) and not _GIVEN.match(line)
    ]
    kept = _kept({name for line in other for name in _NAME.findall(line)}, chosen)
    lent = [count is not None and _is_lent(count[1], chosen) and count[1] not in kept for count in counts]
    return (line for line, out in zip(lines, lent, strict=True) if not out)


def _is_lent(name: str, chosen: dict[str, set[str]]) -> bool:
    """Whether a value is an argument, nothing, or chosen among others; the function may own every other value."""
    return name in chosen or _LENT.match(name) is not None


def _kept(used: set[str], chosen: dict[str, set[str]]) -> set[str]:
    """The values that are ``used`` beyond the function or may be owned by it, with all that may be the same value.

    ``chosen``: of each value that is chosen among others these.
    """
    kept, before = set(used), -1
    while len(kept) > before:
        before = len(kept)
        for name, others in chosen.items():
            same = {name, *others}
            if same & kept or not all(_is_lent(one, chosen) for one in same):
                kept |= same
    return kept
