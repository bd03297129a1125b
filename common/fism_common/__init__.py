"""Code that the server and the client share; it imports neither."""

__version__ = "0.1.0"
"""The version of the whole distribution."""
