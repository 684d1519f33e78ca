"""Fleets: they emit events and obey decisions."""
