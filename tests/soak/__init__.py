"""A service that runs for a while: nothing that should stay the same may grow."""
