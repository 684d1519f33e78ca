"""Placing without evictions: each task on the node that scores best, in the domain that scores best."""
