"""How the service is: what is known of its roles, and where that is reported."""
