"""The history of the streams, the audit that checks it against the invariants, and the check of a connector."""
