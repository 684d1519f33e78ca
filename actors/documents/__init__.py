"""Reading documents of users: bounded, checked, and refused with the path of the offending key."""
