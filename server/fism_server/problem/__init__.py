"""The problem as the coordinator configures it, with the private objective H."""
