"""The fairshare plugin: what KAI Scheduler's plugin `proportion` decides, over queues as a tree."""
