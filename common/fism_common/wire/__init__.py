"""The wire: messages, vectors in slices, channels and certificates. Only this package knows protobuf."""
