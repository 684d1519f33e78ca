"""Settings and profiles."""
