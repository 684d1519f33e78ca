"""Processes of this machine: what came from ours, the folders they leave, and how all of it ends."""
