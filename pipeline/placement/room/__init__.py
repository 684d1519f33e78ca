"""Room as kernels count it: resources, anti-affinity on single nodes and cards as columns of the nodes."""
