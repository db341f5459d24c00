"""A proxy in front of one broker that does to a producer's requests what a test wants done.

    with ProduceProxy(bootstrap, [PASS, LOSE_ANSWER]) as proxy:
        producer = in_environment(Producer, proxy.environment)(bootstrap_servers=proxy.bootstrap)

Each Produce request takes the next fate of the list, and passes when the list is used up; all other
requests pass. Requests may come without waiting for answers, and are answered in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum, auto

from headwater.base.errors import ErrorCode
from headwater.client.connection.bootstrap import Address, parse_bootstrap
from headwater.client.connection.cluster_connection import connect_channel
from headwater.client.environment import ClientEnvironment
from headwater.net.peer_channel import PeerChannel
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import decode
from headwater.wire.frames import RequestHeader, encode_response, read_request_header
from headwater.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.support.proxies.proxy_thread import HOST, ProxyThread, read_frame


class Fate(Enum):
    PASS = auto()
    #: The connection breaks before the request reaches the broker.
    LOSE_REQUEST = auto()
    #: The broker does what it was asked to, and the connection breaks before its answer arrives.
    LOSE_ANSWER = auto()
    #: The broker does not do it, and says that it might if it is asked again.
    REFUSE = auto()


class ProduceProxy(ProxyThread):
    def __init__(self, bootstrap: str, fates: Sequence[Fate]) -> None:
        super().__init__(parse_bootstrap(bootstrap)[0])
        self.fates = list(fates)
        self.produce_count = 0
        #: For a client that would otherwise go where the broker says it is.
        self.environment = ClientEnvironment(connect=self.connect)

    async def connect(self, address: Address, client_id: str, timeout_s: float) -> PeerChannel:
        return await connect_channel(Address(HOST, self.port), client_id, timeout_s)

    async def pass_on(
        self,
        requests: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
    ) -> None:
        """It ends when either side, or a fate, ends it."""
        # For each request in order: its fate, if the broker is to answer, or an answer of our own.
        owed: asyncio.Queue[bytes | Fate] = asyncio.Queue()
        directions = (
            self._loop.create_task(self._forward(requests, broker, owed)),
            self._loop.create_task(_answer(answers, back, owed)),
        )
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _forward(
        self,
        client: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
        owed: asyncio.Queue[bytes | Fate],
    ) -> None:
        while True:
            frame = await read_frame(client)
            header = read_request_header(frame[4:])
            fate, is_answered = Fate.PASS, True
            if header.api_key == ApiKey.PRODUCE:
                fate = self.fates.pop(0) if self.fates else Fate.PASS
                self.produce_count += 1
                request, _ = decode(
                    ProduceRequest, frame[4:], header.api_version, header.body_position
                )
                is_answered = request.acks != 0
                if fate is Fate.LOSE_REQUEST:
                    return
                if fate is Fate.REFUSE:
                    owed.put_nowait(_refusal(header, request))
                    continue
            broker.write(frame)
            await broker.drain()
            if is_answered:
                owed.put_nowait(fate)


async def _answer(
    answers: asyncio.StreamReader, back: asyncio.StreamWriter, owed: asyncio.Queue[bytes | Fate]
) -> None:
    while True:
        answer = await owed.get()
        if isinstance(answer, Fate):
            frame = await read_frame(answers)
            if answer is Fate.LOSE_ANSWER:
                return
            back.write(frame)
        else:
            back.write(answer)
        await back.drain()


def _refusal(header: RequestHeader, request: ProduceRequest) -> bytes:
    responses = [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                PartitionProduceResponse(
                    index=partition.index,
                    error_code=ErrorCode.NOT_ENOUGH_REPLICAS,
                    base_offset=-1,
                )
                for partition in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    parts = encode_response(
        ApiKey.PRODUCE,
        header.api_version,
        header.correlation_id,
        ProduceResponse(responses=responses),
    )
    return b"".join(bytes(part) for part in parts if isinstance(part, bytes | bytearray))
