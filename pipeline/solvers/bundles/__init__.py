"""Whole gangs as victims: bundles in order, a vote, the least that covers the need (Volcano, gang-aware actions)."""
