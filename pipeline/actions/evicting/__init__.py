"""What evict asks beside the search for one gang group."""
