"""The options of every gRPC channel and server. gRPC ignores a misspelt key: each option has a test of its effect."""

from __future__ import annotations

from fism_common.wire import MESSAGE_LIMIT

Options = list[tuple[str, int]]

_COMMON: Options = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # Two messages a stream on their way in; by its own measure gRPC takes tens of MiB, for no more speed.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 2 * 2**20),
    # A peer that is frozen or cut off without a word is noticed after both; keepalive_timeout_ms would have no effect.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),  # no bound: a client may wait for the others for hours
]

CHANNEL: Options = _COMMON
SERVER: Options = [
    *_COMMON,
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),  # else a client that waits is told to go away
    ("grpc.so_reuseport", 0),  # else a second server on the port takes half of the calls in silence
]
