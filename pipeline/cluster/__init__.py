"""The state: immutable NumPy columns, and the fold that makes the next state from news."""
