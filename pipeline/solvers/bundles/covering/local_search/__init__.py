"""Local search for cheaper victims in one domain: ruin and recreate, guided by multipliers."""
