"""Configurations and manifests of other schedulers, turned into what Clearway reads."""
