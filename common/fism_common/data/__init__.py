"""Columns, moments and data sources: what every client does to its data alike."""
