"""The compiled search: columns of the fleet and of a kind of tasks, swept for places and kept up with decisions."""
