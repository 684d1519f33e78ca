"""What may go: candidates cut into safe and whole bundles, their cost and their order."""
