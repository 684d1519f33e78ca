"""What is put right in a set of victims once it is chosen: no podgroup breaks needlessly, and task priorities hold."""
