"""Who asks for what, and why: one action a file, each a function from progress to progress."""
