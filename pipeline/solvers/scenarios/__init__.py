"""Scenarios: victims accumulate until the preemptor fits, and those that fit beside it stay or move (KAI Scheduler)."""
