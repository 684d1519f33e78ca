"""What goes: the least set of bundles after which the gang places, improved and given back."""
