"""Placement: what is needed, in which domains, and a node for every task."""
