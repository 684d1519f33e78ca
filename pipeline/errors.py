"""Refusals of the pure core: the only exceptions it raises on purpose."""


class Refused(ValueError):
    """Input that the core will not work on; the message says what was expected, what was found, and where."""


class PluginRefused(Refused):
    """A plugin whose methods do not match the extension points that it declares."""


class PolicyRefused(Refused):
    """A policy that names something unknown, or combines what cannot be combined."""


class StateRefused(Refused):
    """Columns that contradict each other, or news about rows that do not exist."""
