"""As much of HTTP/2 as it takes to begin a call and not to end it."""

from __future__ import annotations


def headers() -> bytes:
    """Return the header fields of a call of Join, each written out."""
    fields = {
        ":method": "POST",
        ":scheme": "https",
        ":path": "/fism.v1.Federation/Join",
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """Return a frame of HTTP/2."""
    return len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + body


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
JOIN = frame(1, 4, 1, headers()) + frame(0, 1, 1, b"\0" + (0).to_bytes(4))
