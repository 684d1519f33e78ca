"""Compiling kernels ahead: what `clearway warm` does."""
