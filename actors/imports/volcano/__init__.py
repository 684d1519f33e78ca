"""Volcano's configuration."""
