"""Who leaves so that a gang can be gathered: candidates, what quotas permit of them, and which return."""
