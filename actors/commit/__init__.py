"""The committer: judges plans on the newest state, records them once and keeps what was promised."""
