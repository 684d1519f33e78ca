"""Rules on fairness between queues, of arrays alone: plugins decide with them, and a batch may ask them one by one."""
