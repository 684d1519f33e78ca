"""The wire format: envelopes and their bodies."""
