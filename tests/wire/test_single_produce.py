"""Produce requests for one partition: the short way says what the codec says, or nothing."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import MalformedMessageError, decode, encode
from headwater.wire.frames import encode_response
from headwater.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headwater.wire.single_produce import (
    FLEXIBLE_SINCE,
    TOPIC_IDS_SINCE,
    SingleProduce,
    encode_single_answer,
    read_single_produce,
)

VERSIONS = range(FLEXIBLE_SINCE, 14)
TOPIC_ID = uuid.UUID("1b4e28ba-2fa1-41d2-883f-0016d3cca427")


def request_of(
    records: bytes | None = b"records", *, topic: str = "orders", partition: int = 5
) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=1_500,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=TOPIC_ID,
                partition_data=[PartitionProduceData(index=partition, records=records)],
            )
        ],
    )


def read(body: bytes, version: int, *, before: bytes = b"") -> SingleProduce | None:
    return read_single_produce(memoryview(bytearray(before + body)), len(before), version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 3_000_000])
def test_a_request_for_one_partition(version: int, size: int) -> None:
    records = bytes(range(256)) * (size // 256) + bytes(size % 256)
    single = read(encode(request_of(records), version), version, before=b"a header")
    assert single is not None
    assert (single.acks, single.timeout_ms, single.partition) == (-1, 1_500, 5)
    assert single.records == records
    if version >= TOPIC_IDS_SINCE:
        assert single.topic == TOPIC_ID.bytes
    else:
        assert single.topic_name == "orders"


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_else_is_left_to_the_codec(version: int) -> None:
    two_partitions = request_of()
    two_partitions.topic_data[0].partition_data *= 2
    two_topics = request_of()
    two_topics.topic_data *= 2
    transactional = request_of()
    transactional.transactional_id = "writer-1"
    for request in (two_partitions, two_topics, transactional, request_of(None), ProduceRequest()):
        assert read(encode(request, version), version) is None


def test_a_topic_whose_name_is_long_is_left_to_the_codec() -> None:
    assert read(encode(request_of(topic="t" * 126), 11), 11) is not None
    assert read(encode(request_of(topic="t" * 127), 11), 11) is None


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_changed_bytes_are_read_as_the_codec_reads_them(version: int, data: st.DataObject) -> None:
    body = bytearray(encode(request_of(b"some records"), version))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.sampled_from([len(body), len(body), len(body) - 1]))]
    single = read(bytes(body), version)
    if single is None:
        return
    try:
        request, end = decode(ProduceRequest, bytes(body), version)
    except MalformedMessageError as error:
        assert version < TOPIC_IDS_SINCE, error
        assert "\N{REPLACEMENT CHARACTER}" in single.topic_name
        return
    (topic,) = request.topic_data
    (partition,) = topic.partition_data
    assert end == len(body)
    assert request.transactional_id is None
    assert (request.acks, request.timeout_ms) == (single.acks, single.timeout_ms)
    assert (partition.index, partition.records) == (single.partition, single.records)
    if version >= TOPIC_IDS_SINCE:
        assert topic.topic_id.bytes == single.topic
    else:
        assert topic.name == single.topic_name


@pytest.mark.parametrize("version", VERSIONS)
@given(base_offset=st.integers(0, 2**62), log_start=st.integers(0, 2**62))
def test_the_answer_is_the_one_that_the_codec_writes(
    version: int, base_offset: int, log_start: int
) -> None:
    single = read(encode(request_of(), version), version)
    assert single is not None
    answer = PartitionProduceResponse(
        index=5, base_offset=base_offset, log_append_time_ms=-1, log_start_offset=log_start
    )
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(name="orders", topic_id=TOPIC_ID, partition_responses=[answer])
        ]
    )
    expected = encode_response(ApiKey.PRODUCE, version, 77, response)
    assert [encode_single_answer(77, single, base_offset, log_start)] == expected
