"""Koordinator's elastic quota: a minimum that is lent while it is unused, a maximum, and a runtime quota in between."""
