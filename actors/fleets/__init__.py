"""Fleets, which publish events and carry out decisions: simulated, generated, and in memory."""
