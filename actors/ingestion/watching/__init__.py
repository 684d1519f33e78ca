"""How the state and the readers of the streams stand, as metrics and in the log."""
