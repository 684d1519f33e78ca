"""A node for every task: room for each shape, packing, topology, scores."""
