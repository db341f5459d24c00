"""A whole broker in this process, and channels to it.

async def scenario(broker: RunningBroker) -> None:
    await broker.create_topic("orders")
    answer = await broker.produce("orders", [b"one"])
    ...

run_broker_scenario(tmp_path, scenario)
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.records import Record, decode_records, encode_batch
from headwater.wire.schema import Message
from tests.support.brokers.broker_peers import prove

#: By name, not by id, so that requests can be written down.
PRODUCE_VERSION = 12
FETCH_VERSION = 12
_TIMEOUT_S = 30.0


def broker_settings(directory: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory),
        "broker.id": "0",
        "acks.all.flush": "off",
        **(settings or {}),
    }


class RunningBroker:
    def __init__(self, server: BrokerServer, channel: PeerChannel) -> None:
        self.server = server
        self.channel = channel

    async def connect(self) -> PeerChannel:
        """Another connection."""
        endpoint = self.server.listeners.endpoints[0]
        return await PeerChannel.connect(endpoint.host, endpoint.port)

    async def connect_as_broker(self, broker_id: int = 0) -> PeerChannel:
        """The same, as the connection of a broker of this cluster."""
        channel = await self.connect()
        await prove(channel, self.server.context, broker_id)
        return channel

    async def send(self, message: Message, version: int | None = None) -> Any:
        return await self.channel.send(message, version=version, timeout_s=_TIMEOUT_S)

    async def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreatableTopicConfig(name=name, value=value)
                for name, value in (configs or {}).items()
            ],
        )
        response = await self.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert [each.error_code for each in response.topics] == [0]

    async def produce(
        self, topic: str, values: Sequence[bytes], *, partition: int = 0, acks: int = 1
    ) -> PartitionProduceResponse:
        """One batch of these values."""
        answer: PartitionProduceResponse = await self.produce_batch(
            topic, batch_of(values, self.now_ms), partition=partition, acks=acks
        )
        return answer

    async def produce_batch(
        self, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1
    ) -> PartitionProduceResponse:
        response = await self.send(
            produce_request(topic, batch, partition=partition, acks=acks), PRODUCE_VERSION
        )
        answer: PartitionProduceResponse = response.responses[0].partition_responses[0]
        return answer

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        response: FetchResponse = await self.send(request, FETCH_VERSION)
        return response

    async def values(self, topic: str, *, partition: int = 0, offset: int = 0) -> list[bytes]:
        """All values from an offset on, read with as many fetches as it takes."""
        found: list[bytes] = []
        while True:
            request = fetch_request({(topic, partition): offset})
            data = (await self.fetch(request)).responses[0].partitions[0]
            assert data.error_code == 0
            records = [each for each in records_of(data) if each.offset >= offset]
            if not records:
                return found
            found += [each.value or b"" for each in records]
            offset = records[-1].offset + 1

    @property
    def now_ms(self) -> int:
        return self.server.context.clock.wall_ms()


def batch_of(values: Sequence[bytes], timestamp_ms: int, **fields: Any) -> bytes:
    records = [Record(i, timestamp_ms, b"key", value) for i, value in enumerate(values)]
    return encode_batch(records, base_offset=0, **fields)


def produce_request(
    topic: str, batch: bytes, *, partition: int = 0, acks: int = 1, timeout_ms: int = 10_000
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def fetch_request(
    offsets: Mapping[tuple[str, int], int],
    *,
    partition_max_bytes: int = 1 << 20,
    **fields: Any,
) -> FetchRequest:
    """A request for partitions from these offsets; without `min_bytes` it never waits."""
    topics: dict[str, FetchTopic] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, FetchTopic(topic=topic)).partitions.append(
            FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes
            )
        )
    return FetchRequest(topics=list(topics.values()), **{"min_bytes": 0, **fields})


def records_of(data: PartitionData) -> list[Record]:
    records = data.records
    assert isinstance(records, (bytes, bytearray, memoryview))
    return list(decode_records(bytes(records)))


def run_broker_scenario(
    directory: Path,
    scenario: Callable[[RunningBroker], Awaitable[None]],
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run a scenario with a broker on `directory`, which is stopped in the end."""

    async def run() -> None:
        server = BrokerServer(static_of(broker_settings(directory, settings)))
        await server.start()
        try:
            endpoint = server.listeners.endpoints[0]
            channel = await PeerChannel.connect(endpoint.host, endpoint.port)
            try:
                await scenario(RunningBroker(server, channel))
            finally:
                await channel.close()
        finally:
            await server.stop()

    asyncio.run(run())
