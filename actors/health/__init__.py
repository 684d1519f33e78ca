"""How the service is: what is known of its roles, and who is told."""
