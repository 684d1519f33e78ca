"""Whole gangs as victims: bundles in order, a vote, the fewest that cover the need (Volcano's gang-aware actions)."""
