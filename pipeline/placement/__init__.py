"""Where: what is needed, which domains, and a node for every task."""
