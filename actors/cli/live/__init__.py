"""Commands that look at a live fleet and touch nothing."""
