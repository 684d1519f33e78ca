"""Scenarios: victims accumulate until the preemptor fits, and what fits beside it is put back (KAI Scheduler)."""
