"""Solvers: each folder is one family of ways from a need to a statement, which says which tasks go."""
