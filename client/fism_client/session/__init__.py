"""A client's side of the conversation with the server."""
