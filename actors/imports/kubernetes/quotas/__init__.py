"""What Kueue and Koordinator count apart by kind of node, as queues of a cluster file."""
