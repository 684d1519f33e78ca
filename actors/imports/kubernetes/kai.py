"""Objects of KAI Scheduler among manifests, read as ``import kai-config`` reads them."""

from __future__ import annotations

from typing import Any

from actors.documents.model import Location
from actors.imports.fields import Fields
from actors.imports.kai.objects import Objects
from actors.imports.marks import passed_over

_UNREAD = "nothing here reads this"


class _ManifestRefusals:
    """Implements `Refusals` for a manifest: what is not read is reported, what makes no sense is refused."""

    def __init__(self, about: Fields, kind: str) -> None:
        self._about, self._over = about, passed_over(kind)

    def refuse(self, where: Location, told: str) -> None:
        """Report a field that nothing reads; refuse any other."""
        if told != _UNREAD:
            self._about.refuse(where, told)
        if ".".join(map(str, where)) not in self._over:
            self._about.leave_out(where, told)


def parts_of(about: Fields, kind: str) -> Objects:
    """An object as parts of a cluster file.

    Raises
    ------
    FieldRefused
        If a value in it makes no sense.
    """
    about.skip(*about.data)
    objects = Objects()
    plain: dict[str, Any] = {**about.data, "kind": kind}
    objects.take(plain, _ManifestRefusals(about, kind), ())
    return objects
