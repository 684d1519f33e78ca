"""The cluster file: documents, their bounds and their references to each other."""
