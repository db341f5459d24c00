"""A proxy that loses answers, so that a producer sends again what the broker has already stored.

The second Produce request, and then every tenth, is passed on, its answer is read and thrown away,
and the client's connection is closed. All else passes through. The broker must name the proxy as
its own address (`advertised.listeners`), or a client would walk past it after its first question.
"""

from __future__ import annotations

import asyncio
import struct

from tests.support.proxies.proxy_thread import HOST, ProxyThread, read_frame

PRODUCE = 0
LOSE_EVERY = 10


class AnswerLosingProxy(ProxyThread):
    def __init__(self, port: int, broker_port: int) -> None:
        super().__init__((HOST, broker_port), port)
        self.lost_count = 0
        self._produce_count = 0

    def count_anew(self) -> None:
        """As if no request had come yet."""
        self.lost_count = self._produce_count = 0

    async def pass_on(
        self,
        requests: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
    ) -> None:
        # One request after the other keeps every answer beside its request.
        while True:
            request = await read_frame(requests)
            [api_key, version] = struct.unpack_from(">hh", request, 4)
            broker.write(request)
            if api_key == PRODUCE and _wants_no_answer(request, version):
                continue
            answer = await read_frame(answers)
            if api_key == PRODUCE and self._is_to_lose():
                return
            back.write(answer)
            await back.drain()

    def _is_to_lose(self) -> bool:
        self._produce_count += 1
        is_to_lose = self._produce_count % LOSE_EVERY == 2
        self.lost_count += is_to_lose
        return is_to_lose


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
