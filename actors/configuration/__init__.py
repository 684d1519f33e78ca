"""Settings and profiles, and the configurations of other schedulers."""
