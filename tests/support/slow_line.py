"""A line to a broker that takes its time: a proxy on this machine that hands everything on a while later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

START_LIMIT_S = 20.0


@dataclass
class SlowLine:
    """Where it listens, and how many seconds it takes each way; that may be changed at any time."""

    port: int = 0
    each_way_s: float = 0.0


@contextmanager
def slow_line(port: int) -> Iterator[SlowLine]:
    """Hand on to a port of this machine."""
    loop, up, line = asyncio.new_event_loop(), threading.Event(), SlowLine()
    servers: list[asyncio.Server] = []

    async def late(pieces: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
        try:
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not piece:
                    break
                sink.write(piece)
                await sink.drain()
        except ConnectionError:
            pass  # the other side has left
        finally:
            sink.close()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        handing = asyncio.ensure_future(late(pieces, sink))
        piece = b"x"
        while piece:
            try:
                piece = await source.read(65_536)
            except ConnectionError:
                piece = b""
            pieces.put_nowait((loop.time() + line.each_way_s, piece))
        await handing

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    async def serve() -> None:
        servers.append(await asyncio.start_server(take, "127.0.0.1", 0))
        line.port = servers[0].sockets[0].getsockname()[1]
        up.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.set_exception_handler(lambda *_: None)  # a client may leave in the middle
        loop.run_until_complete(serve())
        loop.run_forever()
        servers[0].close()
        left = asyncio.all_tasks(loop)
        for one in left:
            one.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert up.wait(START_LIMIT_S)
    try:
        yield line
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
