"""What stands in the way of a plan: asked once a search has failed, of the snapshot and not of the solver."""
