"""A client at the level of the protocol for a load of many that wait: one asyncio connection."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, Self

from bench.broker.raw_client import HOST, encode_frame, read_answer
from headwater.wire.api_keys import ApiKey
from headwater.wire.schema import Message

_LENGTH = struct.Struct(">i")
_TIMEOUT_S = 120.0


class AsyncioClient:
    """One connection, one request at a time; made by `connect`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> Self:
        return cls(*await asyncio.open_connection(HOST, port))

    async def ask(self, message: Message, version: int | None = None) -> Any:
        """Send a request and return the message that answers it."""
        self._writer.write(encode_frame(message, version=version))
        async with asyncio.timeout(_TIMEOUT_S):
            (size,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            answer = await self._reader.readexactly(size)
        return read_answer(answer, ApiKey(message.API_KEY), version)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()
