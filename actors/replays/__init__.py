"""Recorded clusters, replayed through the pure pipeline: one file a scenario, and what they share."""
