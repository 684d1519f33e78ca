"""The values of a decision: what is asked, what is answered, why, and at what price."""
