"""The options of every gRPC channel and server. gRPC ignores misspelt keys, so each option has a test of its effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc.aio

if TYPE_CHECKING:
    from fism_common.wire.tls import TlsFiles

Options = list[tuple[str, int]]
MESSAGE_LIMIT = 4 * 2**20

_COMMON: Options = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # Buffer two incoming messages per stream. If gRPC chooses, it buffers tens of MiB, and is not faster.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 2 * 2**20),
    # A peer that is frozen or silently cut off is noticed after both times; keepalive_timeout_ms would have no effect.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),  # no limit: a client may wait for the others for hours
]

CHANNEL: Options = _COMMON
PLAIN: Options = [*CHANNEL, ("grpc.enable_http_proxy", 0)]
"""For plain text, which is for this host only: a proxy from the environment would be another host."""
SERVER: Options = [
    *_COMMON,
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),  # else a waiting client gets GOAWAY
    ("grpc.so_reuseport", 0),  # else a second server on the port silently takes half of the calls
    # Limits before a caller is authenticated: concurrent calls per connection, size of the headers, time for the
    # handshake, and time without a call.
    ("grpc.max_concurrent_streams", 32),
    ("grpc.max_metadata_size", 8 * 2**10),
    ("grpc.absolute_max_metadata_size", 16 * 2**10),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 30_000),
]


def open_channel(address: str, tls: TlsFiles | None) -> grpc.aio.Channel:
    """Return a client's channel: with certificates, TLS without a fallback; else plain text."""
    if tls is None:
        return grpc.aio.insecure_channel(address, options=PLAIN)
    from fism_common.wire.tls import channel_credentials  # noqa: PLC0415  # plain text needs no cryptography

    return grpc.aio.secure_channel(address, channel_credentials(tls), options=CHANNEL)
