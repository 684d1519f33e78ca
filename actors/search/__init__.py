"""The dispatcher and its searchers: one cycle after the other, searched in parallel."""
