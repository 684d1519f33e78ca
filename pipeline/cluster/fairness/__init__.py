"""Rules of fairness between queues, over arrays: plugins use them, and ``simulate`` can ask a single one."""
