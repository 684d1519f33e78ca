"""Messages that were refused while entries before them are missing: they wait until a list has made up for those.

They may name what stood in those entries, and then nothing is wrong with them. The list says how the fleet is since, so
they change nothing any more; what names something that the list does not know either is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from actors.protocol.envelopes import Message

#: Messages that wait at most, so that they stay bounded where no list comes. Those beyond are refused at once.
_KEPT = 10_000
#: What is said of a message that may have been right.
DOUBT = "; entries before it are missing"
#: The key by which a message says what is gone.
_GONE = {
    "task_ended": "task", "podgroup_removed": "podgroup", "node_removed": "node", "queue_removed": "queue",
    "budget_removed": "budget",
}  # fmt: skip

#: A message, and why it is refused.
Refusal = tuple[Message, str]


class InDoubt:
    """The messages that wait, in the order in which they came, each with the reason."""

    def __init__(self) -> None:
        self._held: list[Refusal] = []

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, said: Sequence[Refusal]) -> list[Refusal]:
        """Keep refused messages; returns those that do not wait, because they are wrong anyway or too many.

        A list names nothing that it does not hold itself.
        """
        at_once: list[Refusal] = []
        for message, reason in said:
            if message.kind == "fleet_listed":
                at_once.append((message, reason))
            elif len(self._held) < _KEPT:
                self._held.append((message, reason))
            else:
                at_once.append((message, reason + DOUBT))
        return at_once

    def let_go(self) -> list[Refusal]:
        """Those that wait, but for what says only that something is gone, and what was said of that; none waits now."""
        held, self._held = self._held, []
        gone = {name for message, _ in held for name in _left(message)}
        return [one for one in held if gone.isdisjoint(_named(one[0].body))]


def _left(message: Message) -> Iterable[tuple[str, str]]:
    """What a message says is gone, as a key and a name."""
    key, body = _GONE.get(message.kind), message.body
    if key is not None and not getattr(body, "replaced", False):
        yield key, getattr(body, key)


def _named(body: Any) -> Iterable[tuple[str, str]]:
    """What a message is about, as a key and a name."""
    return ((key, name) for key in _GONE.values() if isinstance(name := getattr(body, key, None), str))
