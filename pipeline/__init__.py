"""The pure core: it decides which running work makes room for a gang, and does nothing else."""
