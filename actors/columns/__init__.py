"""Documents to columns: names become rows."""
