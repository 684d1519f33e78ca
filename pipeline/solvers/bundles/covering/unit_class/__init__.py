"""Units that policy ranks equal: which of them go, so that it costs least."""
