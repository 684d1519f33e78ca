"""Policy: may it, in what order, at what price. One plugin a file; a plugin imports no other."""
