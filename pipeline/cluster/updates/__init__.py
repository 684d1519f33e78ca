"""How a snapshot changes: events, and the fold that carries them out."""
