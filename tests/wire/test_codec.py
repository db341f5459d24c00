"""Encoding and decoding by example: nulls, tags, versions, records, and what is refused."""

import uuid

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.region import Records
from headwater.wire.codec import (
    MalformedMessageError,
    Part,
    UnencodableMessageError,
    decode,
    encode,
    encode_parts,
)
from headwater.wire.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
)
from headwater.wire.messages.delete_records import DeleteRecordsRequest
from headwater.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
)
from headwater.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from headwater.wire.messages.heartbeat import HeartbeatResponse
from headwater.wire.messages.list_groups import ListGroupsRequest
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headwater.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headwater.wire.reader_source import REQUEST_ELEMENTS_MAX, STRING_BYTES_MAX
from headwater.wire.writer_source import UNCOPIED_SIZE_MIN
from tests.support.fakes.peers.region import FakeRegion


def fetch_response(*records: Records | None) -> FetchResponse:
    partitions = [
        PartitionData(partition_index=index, records=each) for index, each in enumerate(records)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


def bytes_of(part: Part) -> bytes:
    assert isinstance(part, bytes | bytearray)
    return bytes(part)


def test_classic_and_compact_encodings() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="ab")])
    assert encode(request, 1) == bytes.fromhex("00000001 0002 6162")
    assert encode(request, 9) == bytes.fromhex("02 03 6162 00 01 00 00 00")


def test_null_and_empty_are_different() -> None:
    assert encode(MetadataRequest(topics=None), 1) == bytes.fromhex("ffffffff")
    assert encode(MetadataRequest(topics=[]), 1) == bytes.fromhex("00000000")
    assert decode(MetadataRequest, bytes.fromhex("ffffffff"), 1)[0].topics is None
    assert decode(MetadataRequest, bytes.fromhex("00000000"), 1)[0].topics == []


@pytest.mark.parametrize(
    ("version", "content"),
    [
        (0, "ffffffff"),  # topics
        (1, "00000001 ffff"),  # the name of a topic
        (9, "02 00 00 01 00 00 00"),  # the same, compact
    ],
)
def test_null_where_there_must_be_a_value_is_malformed(version: int, content: str) -> None:
    with pytest.raises(MalformedMessageError, match="must not be null"):
        decode(MetadataRequest, bytes.fromhex(content), version)


def test_a_field_that_the_version_lacks_is_ignored_and_comes_back_at_its_default() -> None:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    decoded, _ = decode(MetadataRequest, encode(request, 3), 3)
    assert decoded.allow_auto_topic_creation is True
    assert decode(MetadataRequest, encode(request, 4), 4)[0] == request


def test_nullable_structs() -> None:
    without = DescribeTopicPartitionsRequest(topics=[])
    assert encode(without, 0) == bytes.fromhex("01 000007d0 ff 00")
    having = DescribeTopicPartitionsRequest(
        topics=[], cursor=Cursor(topic_name="t", partition_index=3)
    )
    encoded = encode(having, 0)
    assert encoded == bytes.fromhex("01 000007d0 01 0274 00000003 00 00")
    assert decode(DescribeTopicPartitionsRequest, encoded, 0) == (having, len(encoded))


def test_tagged_fields_are_written_only_if_they_differ_from_their_default() -> None:
    plain = encode(ApiVersionsResponse(), 3)
    assert plain == bytes.fromhex("0000 01 00000000 00")
    features = [FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=1)]
    response = ApiVersionsResponse(finalized_features_epoch=7, finalized_features=features)
    encoded = encode(response, 3)
    assert encoded == bytes.fromhex(
        "0000 01 00000000 02  01 08 0000000000000007  02 08 02 02 66 0002 0001 00"
    )
    assert decode(ApiVersionsResponse, encoded, 3) == (response, len(encoded))


def test_a_tagged_struct_is_compared_with_its_default_by_value() -> None:
    def size(leader: LeaderIdAndEpoch) -> int:
        partition = PartitionData(current_leader=leader)
        topic = FetchableTopicResponse(partitions=[partition])
        return len(encode(FetchResponse(responses=[topic]), 12))

    assert size(LeaderIdAndEpoch(leader_id=-1, leader_epoch=5)) > size(LeaderIdAndEpoch())


def test_unknown_tagged_fields_are_skipped() -> None:
    # Tags 1 and 77777, of three and of no bytes, in a struct without and in one with known tags.
    unknown = bytes.fromhex("02 01 03 aabbcc d1df04 00")
    request = bytes.fromhex("02 03 6162") + unknown + bytes.fromhex("01 00 00") + unknown
    decoded, position = decode(MetadataRequest, request, 9)
    assert decoded == MetadataRequest(topics=[MetadataRequestTopic(name="ab")])
    assert position == len(request)
    response = bytes.fromhex("0000 01 00000000 02 01 08 0000000000000007 4d 02 ffff")
    answer, position = decode(ApiVersionsResponse, response, 3)
    assert answer == ApiVersionsResponse(finalized_features_epoch=7)
    assert position == len(response)


@pytest.mark.parametrize(
    "content",
    [
        "0000 01 00000000 01 01 07 0000000000000007",  # an int64 in seven bytes
        "0000 01 00000000 01 01 09 0000000000000007ff",  # and in nine
        "0000 01 00000000 01 4d 05 ffff",  # an unknown one that ends outside
        "0000 01 00000000 01 4d ffffffff0f",
    ],
)
def test_tagged_fields_of_a_wrong_size_are_malformed(content: str) -> None:
    with pytest.raises(MalformedMessageError):
        decode(ApiVersionsResponse, bytes.fromhex(content), 3)


def test_unknown_error_codes_are_kept() -> None:
    assert decode(HeartbeatResponse, bytes.fromhex("000003e7"), 0, 2)[0].error_code == 999


@pytest.mark.parametrize(
    "content",
    [
        "808080808000 01 00 00 00",  # a varint of six bytes
        "ffffffff0f",  # four billion topics
        "06 03 61",  # five topics in two bytes
        "02 7f 61",  # a name of 126 bytes in one
        "02 03 c328 00 01 00 00 00",  # no UTF-8
        "02 03 6162",  # the end is missing
        "",
    ],
)
def test_malformed_bytes(content: str) -> None:
    with pytest.raises(MalformedMessageError) as caught:
        decode(MetadataRequest, bytes.fromhex(content), 9)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_an_array_that_claims_too_much_is_refused_before_its_elements_are_read() -> None:
    with pytest.raises(MalformedMessageError, match="too many elements"):
        decode(MetadataRequest, bytes.fromhex("06 03 61"), 9)
    with pytest.raises(MalformedMessageError, match="too many elements"):
        decode(DeleteRecordsRequest, bytes.fromhex("7fffffff"), 0)
    with pytest.raises(MalformedMessageError, match="too many elements"):
        decode(DescribeLogDirsRequest, bytes.fromhex("00000001 0000 00000002 00000000"), 1)


@pytest.mark.parametrize("size", [126, 127, 128, 16382, 16383, 16384, STRING_BYTES_MAX])
def test_lengths_around_the_next_byte_of_a_varint(size: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * size)])
    encoded = encode(request, 9)
    varint, length = [], size + 1
    while length:
        varint.append(length % 128 + (128 if length >= 128 else 0))
        length //= 128
    assert encoded.startswith(b"\x02" + bytes(varint) + b"xx")
    assert decode(MetadataRequest, encoded, 9) == (request, len(encoded))


@pytest.mark.parametrize("size", [2**21 - 2, 2**21 - 1])
def test_bytes_may_be_longer_than_strings(size: int) -> None:
    request = SaslAuthenticateRequest(auth_bytes=b"x" * size)
    encoded = encode(request, 2)
    assert len(encoded) == size + (4 if size + 1 == 2**21 else 3) + 1
    assert decode(SaslAuthenticateRequest, encoded, 2) == (request, len(encoded))


def test_no_request_has_a_longer_string_than_ever() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * (STRING_BYTES_MAX + 1))])
    with pytest.raises(MalformedMessageError, match="name is too long"):
        decode(MetadataRequest, encode(request, 9), 9)


def test_no_request_has_more_elements_than_allowed() -> None:
    name = bytes.fromhex("01 00")
    count = REQUEST_ELEMENTS_MAX + 2
    varint = bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14])
    content = varint + name * (REQUEST_ELEMENTS_MAX + 1) + bytes.fromhex("01 00 00 00")
    with pytest.raises(MalformedMessageError, match="too many elements"):
        decode(MetadataRequest, content, 9)


def test_bytes_beyond_the_end_are_not_looked_at() -> None:
    content = encode(MetadataRequest(topics=[MetadataRequestTopic(name="ab")]), 9)
    for end in range(len(content)):
        with pytest.raises(MalformedMessageError):
            decode(MetadataRequest, content, 9, 0, end)


def test_records_are_slices_of_the_buffer() -> None:
    produced = [PartitionProduceData(records=b"first"), PartitionProduceData(records=None)]
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=produced)])
    lowest, highest = ProduceRequest.VERSIONS
    for version in range(lowest, highest + 1):
        frame = bytearray(encode(request, version))
        decoded, _ = decode(ProduceRequest, memoryview(frame), version)
        first, second = decoded.topic_data[0].partition_data
        assert isinstance(first.records, memoryview)
        assert first.records.tobytes() == b"first"
        assert second.records is None
        first.records[0:1] = b"F"
        assert b"First" in frame


@pytest.mark.parametrize("version", [4, 11, 12])
def test_regions_go_between_the_bytes(version: int) -> None:
    regions = FakeRegion(300, b"x"), FakeRegion(5, b"y")
    parts = encode_parts(fetch_response(regions[0], b"abc", regions[1], None), version)
    placeholders = fetch_response(b"x" * 300, b"abc", b"y" * 5, None)
    expected = encode(placeholders, version)
    assert [part for part in parts if isinstance(part, FakeRegion)] == list(regions)
    filled = [part.read() if isinstance(part, FakeRegion) else bytes_of(part) for part in parts]
    assert b"".join(filled) == expected
    assert len(parts) == 5


def test_an_empty_region_is_left_out() -> None:
    assert encode_parts(fetch_response(FakeRegion(0)), 12) == [encode(fetch_response(b""), 12)]


def test_nothing_follows_a_region_that_ends_the_message() -> None:
    parts = encode_parts(fetch_response(FakeRegion(9)), 4)
    assert parts[1:] == [FakeRegion(9)]


@pytest.mark.parametrize("bulk_size", [0, 10, UNCOPIED_SIZE_MIN - 1, UNCOPIED_SIZE_MIN, 100_000])
def test_records_in_a_tuple_are_those_bytes(bulk_size: int) -> None:
    bulk = bytearray(b"b" * bulk_size)
    apart = fetch_response((b"head", bulk), b"abc", (b"tail",), (b"head", bulk))
    expected = encode(fetch_response(b"head" + bulk, b"abc", b"tail", b"head" + bulk), 12)
    assert encode(apart, 12) == expected
    parts = encode_parts(apart, 12)
    assert b"".join(bytes_of(part) for part in parts) == expected
    # Large ones go out from where they are.
    assert sum(part is bulk for part in parts) == (2 if bulk_size >= UNCOPIED_SIZE_MIN else 0)


def test_a_region_cannot_become_bytes() -> None:
    with pytest.raises(UnencodableMessageError, match="region"):
        encode(fetch_response(FakeRegion(9)), 12)


def test_a_message_without_bytes_has_one_empty_part() -> None:
    assert encode_parts(ListGroupsRequest(), 0) == [b""]
    assert decode(ListGroupsRequest, b"", 0) == (ListGroupsRequest(), 0)


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9),
        (MetadataRequest(topics=[MetadataRequestTopic(name="x" * 40_000)]), 1),
        (FetchRequest(max_bytes=2**31), 4),
    ],
)
def test_values_that_a_version_cannot_hold_are_our_own_error(
    request_: MetadataRequest | FetchRequest, version: int
) -> None:
    with pytest.raises(UnencodableMessageError):
        encode(request_, version)


def test_versions_without_a_schema() -> None:
    with pytest.raises(KafkaError) as caught:
        decode(ApiVersionsRequest, b"", 99)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError) as caught:
        encode(FetchRequest(), 3)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_ids_of_topics() -> None:
    topic_id = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
    encoded = encode(request, 12)
    assert topic_id.bytes in encoded
    assert decode(MetadataRequest, encoded, 12)[0] == request
