"""A proxy that loses answers, so that a producer sends again what the broker has already stored.

The second Produce request, and then every tenth, is passed on, its answer is read and thrown away,
and the client's connection is closed. All else passes through. The broker must name the proxy as
its own address (`advertised.listeners`), or a client would walk past it after its first question.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
PRODUCE = 0
LOSE_EVERY = 10


class AnswerLosingProxy:
    """Runs on a thread and a port of its own while it is entered."""

    def __init__(self, port: int, broker_port: int) -> None:
        self.port = port
        self.lost_count = 0
        self._broker_port = broker_port
        self._produce_count = 0
        # Kept, because a loop refers to tasks that wait for a stream only weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def count_anew(self) -> None:
        """As if no request had come yet."""
        self.lost_count = self._produce_count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        opening = asyncio.start_server(self._serve, HOST, self.port)
        self._server = asyncio.run_coroutine_threadsafe(opening, self._loop).result(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._pass_on(client, back))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        writers = [back]
        try:
            answers, broker = await asyncio.open_connection(HOST, self._broker_port)
            writers.append(broker)
            # One request after the other keeps every answer beside its request.
            while True:
                request = await _read_frame(client)
                [api_key, version] = struct.unpack_from(">hh", request, 4)
                broker.write(request)
                if api_key == PRODUCE and _wants_no_answer(request, version):
                    continue
                answer = await _read_frame(answers)
                if api_key == PRODUCE and self._is_to_lose():
                    return
                back.write(answer)
                await back.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            for writer in writers:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

    def _is_to_lose(self) -> bool:
        self._produce_count += 1
        is_to_lose = self._produce_count % LOSE_EVERY == 2
        self.lost_count += is_to_lose
        return is_to_lose


async def _read_frame(stream: asyncio.StreamReader) -> bytes:
    length = await stream.readexactly(4)
    return length + await stream.readexactly(int.from_bytes(length, "big"))


def _wants_no_answer(request: bytes, version: int) -> bool:
    """Whether a Produce request has acks=0."""
    client_id_size: int = struct.unpack_from(">h", request, 12)[0]
    position = 14 + max(client_id_size, 0)
    if version >= 9:
        # The flexible header ends with its tags, of which clients send none, and a null
        # transactional id is a byte instead of a length of -1.
        position += 1 + 1
    else:
        position += 2
    acks: int = struct.unpack_from(">h", request, position)[0]
    return acks == 0
