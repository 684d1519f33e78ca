"""How many bytes of text the vocabulary holds; only words that are new since the last time are looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.cluster.vocabulary import Vocabulary

#: Parts of the vocabulary whose entries are as long as their writer likes.
_PARTS = ("constraints", "label_sets", "label_values", "taint_sets", "gangs", "gang_groups", "gathers", "card_sets")


@dataclass(slots=True)
class MeasuredWords:
    """The measured vocabulary, and for each part its entries and their bytes."""

    _of: Vocabulary | None = None
    _seen: dict[str, tuple[tuple[object, ...], int]] = field(default_factory=dict)

    def text(self, words: Vocabulary) -> int:
        """Bytes of the text in a vocabulary."""
        if words is not self._of:
            self._of = words
            for part in _PARTS:
                self._measure(part, getattr(words, part))
        return sum(text for _, text in self._seen.values())

    def _measure(self, part: str, entries: tuple[object, ...]) -> None:
        before, text = self._seen.get(part, ((), 0))
        known = len(before)
        if known and (len(entries) < known or entries[known - 1] is not before[-1] or entries[0] is not before[0]):
            known, text = 0, 0  # other words, or one that has grown
        self._seen[part] = entries, text + sum(len(repr(entry)) for entry in entries[known:])
