"""A gang is placed in one domain while victims return to it: its places are kept, and found anew where needed."""
