"""What may be evicted: at once, in a time, and in proportion to the need."""
