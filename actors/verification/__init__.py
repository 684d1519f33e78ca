"""The history of the streams, and the audit that holds it against the invariants."""
