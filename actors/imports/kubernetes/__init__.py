"""Manifests of Kubernetes and of the schedulers that run on it."""
