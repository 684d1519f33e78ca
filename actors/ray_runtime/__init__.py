"""The roles as Ray actors; the only folder that knows Ray."""
