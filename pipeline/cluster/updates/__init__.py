"""How a snapshot changes: news as columns, and the fold."""
