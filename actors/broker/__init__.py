"""Streams and ledger: the ports, and their implementations."""
