"""How long actors wait for each other, in seconds."""

#: For an answer from the committer, before it is asked again.
CALL_LIMIT_S = 30.0
#: For fetches from the object store, and for answers that should come at once.
FETCH_LIMIT_S = 5.0
#: How often a standby asks for the lease: its longest delay if the leader gave it back; else it must run out first.
STANDBY_S = 0.25
#: For a thread to end.
STOP_LIMIT_S = 10.0
