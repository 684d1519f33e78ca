"""Which tasks go: each folder is one family of ways from a need to a statement."""
