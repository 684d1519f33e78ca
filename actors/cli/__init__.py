"""The command line: `commands` has the options, other modules do the work."""
