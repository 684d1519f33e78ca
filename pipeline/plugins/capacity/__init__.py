"""The capacity plugin: queues with a guarantee, a deserved share and a ceiling, flat or as a tree."""
