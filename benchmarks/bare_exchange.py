"""The fastest possible round: grpc.aio at both ends, the same bytes in the same slices, vectors assembled, a mean.

No checks, no records, no client names. `bare_exchange.py server N S ROUNDS` prints the median milliseconds of a round.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from typing import Any

import grpc
import grpc.aio
import numpy as np

from fism_common.wire.channel import CHANNEL, SERVER
from fism_common.wire.pb import federation_pb2 as pb
from fism_common.wire.slices import SLICE

METHOD = "/bare.Exchange/Round"


def slices(n: int, size: int) -> list[tuple[int, int]]:
    """Return the begin and end of every slice."""
    return [(begin, min(begin + size, n)) for begin in range(0, n, size)]


async def serve(n: int, clients: int, rounds: int) -> float:
    """Return the median milliseconds of a round."""
    streams: list[Any] = []
    complete, over = asyncio.Event(), asyncio.Event()

    async def exchange(_: object, context: Any) -> None:  # noqa: ANN401
        await context.read()
        streams.append(context)
        if len(streams) == clients:
            complete.set()
        await over.wait()

    handler = grpc.stream_stream_rpc_method_handler(
        exchange, request_deserializer=pb.ClientMessage.FromString, response_serializer=bytes
    )
    server = grpc.aio.server(options=SERVER)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bare.Exchange", {"Round": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    processes = [subprocess.Popen([sys.executable, __file__, "client", str(port), str(n)]) for _ in range(clients)]  # noqa: ASYNC220
    await complete.wait()
    x, h = np.zeros(n), np.ones(n)
    received = [np.empty(n) for _ in range(clients)]

    async def ask(i: int, messages: list[bytes]) -> None:
        for message in messages:
            await streams[i].write(message)
        filled = 0
        while filled < n:
            reply = (await streams[i].read()).answer
            part = np.frombuffer(reply.points)
            received[i][reply.offset : reply.offset + part.size] = part
            filled += part.size

    times = []
    for k in range(rounds):
        began = time.perf_counter()
        messages = [
            pb.ServerMessage(
                question=pb.Question(round=k, gamma=0.1, weight=0.1, offset=a, x=x[a:b].tobytes(), h=h[a:b].tobytes())
            ).SerializeToString()
            for a, b in slices(n, SLICE // 2)
        ]
        await asyncio.gather(*(ask(i, messages) for i in range(clients)))
        x = received[0].copy()
        for part in received[1:]:
            x += part
        x /= clients
        times.append(time.perf_counter() - began)
    over.set()
    await server.stop(0)
    for process in processes:
        process.kill()
        process.wait()
    return 1e3 * statistics.median(times)


async def answer(port: int, n: int) -> None:
    """Send every x back."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL) as channel:
        call: Any = channel.stream_stream(
            METHOD,
            request_serializer=pb.ClientMessage.SerializeToString,
            response_deserializer=pb.ServerMessage.FromString,
        )()
        await call.write(pb.ClientMessage(opening=pb.Opening()))
        x, h, filled = np.empty(n), np.empty(n), 0
        while (message := await call.read()) is not grpc.aio.EOF:
            order = message.question
            part = np.frombuffer(order.x)
            x[order.offset : order.offset + part.size] = part
            h[order.offset : order.offset + part.size] = np.frombuffer(order.h)
            filled += part.size
            if filled == n:
                filled = 0
                for a, b in slices(n, SLICE):
                    reply = pb.Answer(number=order.round, inner=[0.0], offset=a, points=x[a:b].tobytes())
                    await call.write(pb.ClientMessage(answer=reply))


if __name__ == "__main__":
    if sys.argv[1] == "server":
        print(asyncio.run(serve(*map(int, sys.argv[2:]))))
    else:
        asyncio.run(answer(*map(int, sys.argv[2:])))
