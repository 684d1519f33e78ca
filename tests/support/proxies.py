"""Proxies before a broker, on this machine: one speaks TLS, the other takes its time."""

from __future__ import annotations

import asyncio
import ssl
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

START_LIMIT_S = 20.0
_PIECE = 65_536


@contextmanager
def _proxy(
    inside: Callable[[], Awaitable[tuple[StreamReader, StreamWriter]]],
    pump: Callable[[StreamReader, StreamWriter], Awaitable[None]],
    context: ssl.SSLContext | None = None,
) -> Iterator[int]:
    """The port of a thread that hands on what comes to what is ``inside``, and back."""
    told: Queue[tuple[int, Callable[[], object]]] = Queue()

    async def take(reader: StreamReader, writer: StreamWriter) -> None:
        inner_reader, inner_writer = await inside()
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    async def serve() -> None:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda *_: None)  # a client may leave in the middle, if only for lack of trust
        server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
        told.put((server.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(end.set)))
        await end.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    port, end = told.get(timeout=START_LIMIT_S)
    try:
        yield port
    finally:
        end()
        thread.join()


@contextmanager
def behind_tls(target: Path, context: ssl.SSLContext) -> Iterator[int]:
    """Ends TLS at a port of this machine and hands on to a Unix socket."""

    async def pump(source: StreamReader, sink: StreamWriter) -> None:
        try:
            while piece := await source.read(_PIECE):
                sink.write(piece)
                await sink.drain()
        except (ConnectionError, ssl.SSLError):
            pass  # either side left: so does the other
        finally:
            sink.close()

    with _proxy(lambda: asyncio.open_unix_connection(str(target)), pump, context) as port:
        yield port


@dataclass
class SlowLine:
    """Where it listens, and how many seconds it takes each way; that may be changed at any time."""

    port: int = 0
    each_way_s: float = 0.0


@contextmanager
def slow_line(port: int) -> Iterator[SlowLine]:
    """Hands on to a port of this machine, everything a while later."""
    line = SlowLine()

    async def late(pieces: asyncio.Queue[tuple[float, bytes]], sink: StreamWriter) -> None:
        try:
            while True:
                due, piece = await pieces.get()
                await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
                if not piece:
                    break
                sink.write(piece)
                await sink.drain()
        except ConnectionError:
            pass  # the other side has left
        finally:
            sink.close()

    async def pump(source: StreamReader, sink: StreamWriter) -> None:
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        handing = asyncio.ensure_future(late(pieces, sink))
        piece = b"x"
        while piece:
            try:
                piece = await source.read(_PIECE)
            except ConnectionError:
                piece = b""
            pieces.put_nowait((asyncio.get_running_loop().time() + line.each_way_s, piece))
        await handing

    with _proxy(lambda: asyncio.open_connection("127.0.0.1", port), pump) as line.port:
        yield line
