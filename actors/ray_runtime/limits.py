"""How long actors wait for each other, in seconds."""

#: For an answer from the committer, before it is asked again.
CALL_LIMIT_S = 30.0
#: For what is in the object store, and for an answer that should be there at once.
FETCH_LIMIT_S = 5.0
#: How often a standby asks for the lease. It runs out by itself, so this is what a clean end costs.
STANDBY_S = 0.25
#: For a thread to end.
STOP_LIMIT_S = 10.0
