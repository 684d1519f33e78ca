"""How state and messages travel between the processes of a service."""
