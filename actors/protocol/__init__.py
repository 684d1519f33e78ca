"""What is on the wire: envelopes, their bodies, and how untrusted bytes are read."""
