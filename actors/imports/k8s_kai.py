"""Objects of KAI's in a dump, read as ``import kai-config`` reads them."""

from __future__ import annotations

from typing import Any

from actors.documents.model import Location
from actors.imports.fields import Fields
from actors.imports.kai_objects import Objects
from actors.imports.marks import passed_over

_UNREAD = "nothing here reads this"


class _Place:
    """An object among manifests: what is not read is told of, what cannot be meant is refused."""

    def __init__(self, about: Fields, kind: str) -> None:
        self._about, self._over = about, passed_over(kind)

    def refuse(self, where: Location, told: str) -> None:
        """Tell or refuse."""
        if told != _UNREAD:
            self._about.refuse(where, told)
        if ".".join(map(str, where)) not in self._over:
            self._about.leave_out(where, told)


def parts_of(about: Fields, kind: str) -> Objects:
    """An object of a kind as parts of a cluster file.

    Raises
    ------
    FieldRefused
        If something in it cannot be meant.
    """
    about.skip(*about.data)
    objects = Objects()
    plain: dict[str, Any] = {**about.data, "kind": kind}
    objects.take(plain, _Place(about, kind), ())
    return objects
