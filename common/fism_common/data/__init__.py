"""Columns, moments and data sources: how all clients prepare their data in the same way."""
