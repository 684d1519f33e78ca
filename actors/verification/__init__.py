"""The history of the streams, and the audit that checks it against the invariants."""
