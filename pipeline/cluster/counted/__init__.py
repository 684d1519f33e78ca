"""What follows from the tasks, carried by the fold: counts by status, totals, which tasks are where."""
