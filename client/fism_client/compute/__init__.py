"""A client's local work."""
