"""Slices of nodes in which room is sought: what fits there, counted in slots, and which are hopeless."""
