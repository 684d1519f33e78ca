"""What must hold, asked of a snapshot: constraints, anti-affinity, minima, quota."""
