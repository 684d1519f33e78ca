"""Task by task: one waiting task at a time and the victims of one node (Volcano, legacy preempt and reclaim)."""
