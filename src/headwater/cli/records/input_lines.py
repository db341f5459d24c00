"""Standard input as lines, without stopping the event loop while nothing comes.

A pipe or a terminal is watched by the loop. A file never makes anyone wait for long, and the loop
cannot watch one, so it is simply read.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

CHUNK_BYTES: Final = 256 << 10


async def input_lines() -> AsyncIterator[list[bytes]]:
    """The lines of standard input, as many at a time as there are, without their ends."""
    read = _reader()
    unfinished: list[bytes] = []
    while chunk := await read():
        if b"\n" not in chunk:
            unfinished.append(chunk)
            continue
        lines = (b"".join(unfinished) + chunk if unfinished else chunk).split(b"\n")
        last = lines.pop()
        unfinished = [last] if last else []
        yield [line.removesuffix(b"\r") for line in lines]
    if unfinished:
        yield [b"".join(unfinished).removesuffix(b"\r")]


def _reader() -> Callable[[], Awaitable[bytes]]:
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:
        return _read_buffer
    loop = asyncio.get_running_loop()
    try:
        loop.add_reader(descriptor, _nothing)
        loop.remove_reader(descriptor)
    except PermissionError:
        return _read_buffer

    async def read_watched() -> bytes:
        ready = loop.create_future()
        loop.add_reader(descriptor, _set, ready)
        try:
            await ready
        finally:
            loop.remove_reader(descriptor)
        return os.read(descriptor, CHUNK_BYTES)

    return read_watched


async def _read_buffer() -> bytes:
    await asyncio.sleep(0)
    return sys.stdin.buffer.read(CHUNK_BYTES)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _nothing() -> None:
    """Only asks whether the loop can watch."""
