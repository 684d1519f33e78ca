"""One kind of news a file: what an event or a decision becomes before it is folded."""
