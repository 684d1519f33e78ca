"""Actions: which podgroups are served, and for which purpose. One file each, a function from progress to progress."""
