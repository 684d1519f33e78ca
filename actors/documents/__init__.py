"""How a document of a user is read: bounded, checked, and refused with the path of the offending key."""
