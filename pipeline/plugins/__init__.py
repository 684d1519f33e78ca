"""Policy: what may be done, and in which order. One plugin a file; a plugin imports no other plugin."""
