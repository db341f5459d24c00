"""A connection for tests that speak the protocol themselves, well or badly."""

import asyncio
import contextlib
import struct
from typing import TypeVar

from headwater.wire.api_keys import ApiKey, response_class
from headwater.wire.codec import decode
from headwater.wire.frames import encode_request, read_response_header
from headwater.wire.schema import Message

Answer = TypeVar("Answer", bound=Message)


class FuzzClient:
    """One connection; every wait is bounded by `timeout_s`."""

    def __init__(self, host: str, port: int, timeout_s: float = 20.0) -> None:
        self._address = host, port
        self._timeout_s = timeout_s
        self._correlation_id = 0

    async def connect(self) -> None:
        async with asyncio.timeout(self._timeout_s):
            self._reader, self._writer = await asyncio.open_connection(*self._address)

    async def ask(self, request: Message, expected: type[Answer], version: int) -> Answer:
        """Send a request and read its answer."""
        self._correlation_id += 1
        parts = encode_request(
            ApiKey(request.API_KEY), version, self._correlation_id, "healthy", request
        )
        frame = b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))
        await self.write(frame)
        answer = await self.read_frame()
        if answer is None:
            raise ConnectionError("the broker closed the connection")
        message = read_answer(answer, ApiKey(request.API_KEY), version, self._correlation_id)
        assert isinstance(message, expected)
        return message

    async def write(self, chunk: bytes) -> None:
        self._writer.write(chunk)
        async with asyncio.timeout(self._timeout_s):
            await self._writer.drain()

    async def read_frame(self) -> bytes | None:
        """The next answer without its length; None if the broker closes instead."""
        try:
            async with asyncio.timeout(self._timeout_s):
                length = await self._reader.readexactly(4)
                return await self._reader.readexactly(struct.unpack(">i", length)[0])
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def end(self) -> None:
        """Say that nothing more will come, and wait until the broker has closed."""
        try:
            # An OSError: the broker was quicker to close.
            with contextlib.suppress(OSError):
                self._writer.write_eof()
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(self._timeout_s):
                    while await self._reader.read(1 << 16):
                        pass
        finally:
            await self.close()

    def abort(self) -> None:
        """Hang up, whatever is still to be written."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def read_answer(frame: bytes, api_key: ApiKey, version: int, correlation_id: int) -> Message:
    """An answer that is what its request asked for, to the last byte."""
    found, position = read_response_header(frame, api_key, version)
    assert found == correlation_id
    message, end = decode(response_class(api_key), frame, version, position)
    assert end == len(frame)
    return message
