"""One file for each kind of news: what an event or a decision becomes before it is folded."""
