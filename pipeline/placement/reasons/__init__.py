"""Why there is no plan, and why these victims and not others: asked of the snapshot, whatever the solver."""
