"""What both sides of a federation must agree on; imports neither side."""

__version__ = "0.1.0"
"""Of the whole distribution."""
