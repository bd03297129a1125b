"""The gRPC edge of the server."""
