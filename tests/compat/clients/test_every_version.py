"""Each version of the hot APIs that the broker offers says the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from headwater.base.errors import ErrorCode
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.fetch import FetchRequest
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.records import Record, encode_batch
from tests.support.other_clients.brokers import BrokerUnderTest
from tests.support.other_clients.raw import FETCH_BY_ID, RawConnection, fetch_topic, records_in

MakeTopic = Callable[..., str]

NOW_MS = int(time.time() * 1000)


@pytest.fixture
def connection(broker: BrokerUnderTest) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as opened:
        yield opened


def batch(number: int) -> bytes:
    return encode_batch([Record(0, NOW_MS + number, None, b"%d" % number)])


def test_produce_and_fetch(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic_id = connection.topic_id(topic)
    versions = connection.versions(ApiKey.PRODUCE)
    assert versions == range(3, 14)
    for number, version in enumerate(versions):
        produced = connection.produce(topic, batch(number), version)
        assert (produced.error_code, produced.base_offset) == (0, number), version
        assert produced.log_append_time_ms == -1
        assert produced.log_start_offset == (0 if version >= 5 else -1)
    assert connection.versions(ApiKey.FETCH) == range(4, 19)
    for version in connection.versions(ApiKey.FETCH):
        wanted = fetch_topic(topic, 0, topic_id=topic_id if version >= FETCH_BY_ID else None)
        answer = connection.fetch(FetchRequest(topics=[wanted]), version)
        [partition] = answer.responses[0].partitions
        assert (partition.error_code, partition.high_watermark) == (0, len(versions)), version
        found = records_in(partition.records)
        assert [record.value for record in found] == [b"%d" % n for n in range(len(versions))]


def test_list_offsets(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for number in (0, 2, 1):
        connection.produce(topic, batch(number))
    for version in connection.versions(ApiKey.LIST_OFFSETS):
        cases = {-2: (0, -1), -1: (3, -1), NOW_MS + 1: (1, NOW_MS + 2), NOW_MS + 3: (-1, -1)}
        if version >= 7:
            # The offset of the latest time, which need not be the last.
            cases[-3] = (1, NOW_MS + 2)
        for timestamp, (offset, found_timestamp) in cases.items():
            wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
            )
            [found] = connection.ask(request, version).topics[0].partitions
            assert (found.error_code, found.offset, found.timestamp) == (
                0,
                offset,
                found_timestamp,
            ), (version, timestamp)


def test_metadata(connection: RawConnection, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    for version in connection.versions(ApiKey.METADATA):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        answer = connection.ask(request, version)
        [broker] = answer.brokers
        [described] = answer.topics
        assert (described.name, described.error_code) == (topic, 0)
        assert not described.is_internal
        partitions = sorted(described.partitions, key=lambda each: each.partition_index)
        assert [each.partition_index for each in partitions] == [0, 1, 2]
        for each in partitions:
            assert (each.leader_id, each.replica_nodes, each.isr_nodes) == (
                broker.node_id,
                [broker.node_id],
                [broker.node_id],
            )
        if version >= 10:
            assert described.topic_id == connection.topic_id(topic)
        if version >= 1:
            assert answer.controller_id == broker.node_id


def test_api_versions(connection: RawConnection) -> None:
    for version in connection.versions(ApiKey.API_VERSIONS):
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        answer = connection.ask(request, version)
        assert answer.error_code == 0
        ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        # Older clients drop compressions unless they are told of a version that nobody speaks.
        assert ranges[ApiKey.PRODUCE] == (0, 13)
        assert len(ranges) == len(answer.api_keys)


def test_an_api_versions_request_from_the_future(connection: RawConnection) -> None:
    """It is answered in version 0 with what the broker can do, so that the client can try again."""
    # What its body would hold nobody knows, so there is none; the header ends with its tags.
    header = (18, 99, 0, 77, 0xFFFF)
    frame = b"".join(each.to_bytes(2, "big") for each in header) + b"\0"
    connection.send_bytes(len(frame).to_bytes(4, "big") + frame)
    correlation_id, answer = connection.receive(ApiKey.API_VERSIONS, 0)
    assert correlation_id == 77
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [each.api_key for each in answer.api_keys] == [ApiKey.API_VERSIONS]
    # The connection stays usable.
    assert connection.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(ApiKey.PRODUCE, 2), (ApiKey.FETCH, 3), (ApiKey.METADATA, 99), (999, 0)],
)
def test_other_requests_that_nobody_speaks(
    api_key: int, version: int, connection: RawConnection
) -> None:
    frame = b"".join(each.to_bytes(2, "big") for each in (api_key, version, 0, 1, 0xFFFF))
    connection.send_bytes(len(frame).to_bytes(4, "big") + frame)
    assert connection.is_closed_by_peer()
