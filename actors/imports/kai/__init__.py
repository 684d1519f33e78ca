"""KAI Scheduler's configuration, queues and podgroups."""
