"""Processes of this machine: the children of ours, the folders that they leave, and how a service ends."""
