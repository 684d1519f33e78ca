"""Fleets: what emits events and obeys decisions."""
