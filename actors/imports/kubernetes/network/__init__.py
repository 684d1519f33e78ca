"""Networks from manifests as the topology of a cluster file."""
