"""Frames: headers of requests and responses, lengths, and the exception of ApiVersions."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import MalformedMessageError, decode, encode
from headwater.wire.frames import (
    RequestHeader,
    encode_request,
    encode_response,
    read_request_header,
    read_response_header,
)
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse
from headwater.wire.schema import Message
from tests.support.fakes.peers.region import FakeRegion
from tests.support.values.kio_messages import message_kinds, random_pair


def joined(parts: list[object]) -> bytes:
    return b"".join(part if isinstance(part, bytes) else b"" for part in parts)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, "00000010 0003 0001 00000007 0002 6d65 ffffffff"),
        (9, "00000012 0003 0009 00000007 0002 6d65 00 00 01 00 00 00"),
    ],
)
def test_a_request(version: int, expected: str) -> None:
    request = MetadataRequest(topics=None)
    parts = encode_request(ApiKey.METADATA, version, 7, "me", request)
    assert parts == [bytes.fromhex(expected)]
    frame = memoryview(bytearray(parts[0]))[4:]  # type: ignore[arg-type]
    header = read_request_header(frame)
    assert header[:4] == (ApiKey.METADATA, version, 7, "me")
    assert decode(MetadataRequest, frame, version, header.body_position) == (request, len(frame))


def test_no_client_id_is_not_an_empty_one() -> None:
    for client_id in (None, "", "ä"):
        parts = encode_request(ApiKey.API_VERSIONS, 0, -1, client_id, ApiVersionsRequest())
        header = read_request_header(joined([*parts])[4:])
        assert header.client_id == client_id
        assert header.correlation_id == -1


def test_the_header_of_an_unknown_api_can_be_read() -> None:
    frame = struct.pack(">hhih2s", 1234, 5, 6, 2, b"me") + b"?"
    assert read_request_header(frame) == RequestHeader(1234, 5, 6, "me", 12)


def test_the_header_of_a_version_from_the_future_can_be_read() -> None:
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 6, -1) + b"\0body"
    assert read_request_header(frame) == RequestHeader(ApiKey.API_VERSIONS, 99, 6, None, 11)


def test_tagged_fields_in_headers_are_skipped() -> None:
    tags = bytes.fromhex("01 05 02 abcd")
    frame = struct.pack(">hhih", ApiKey.METADATA, 9, 6, -1) + tags
    assert read_request_header(frame).body_position == len(frame)
    answer = struct.pack(">i", 6) + tags
    assert read_response_header(answer, ApiKey.METADATA, 9) == (6, len(answer))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(7),
        struct.pack(">hhih", ApiKey.METADATA, 1, 6, 3) + b"ab",
        struct.pack(">hhih", ApiKey.METADATA, 1, 6, 2) + b"\xc3\x28",
        struct.pack(">hhih", ApiKey.METADATA, 9, 6, -1),
        struct.pack(">hhih", ApiKey.METADATA, 9, 6, -1) + bytes.fromhex("01 05 7f 00"),
        struct.pack(">hhih", ApiKey.METADATA, 9, 6, -1) + bytes.fromhex("ffffffffffff"),
    ],
)
def test_malformed_request_headers(frame: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        read_request_header(frame)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_header_or_malformed(frame: bytes) -> None:
    try:
        header = read_request_header(frame)
    except MalformedMessageError:
        return
    assert 10 <= header.body_position <= len(frame)


@pytest.mark.parametrize("frame", [b"", bytes(3), bytes(4), bytes(4) + b"\x01\x01\x05"])
def test_malformed_response_headers(frame: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        read_response_header(frame, ApiKey.METADATA, 9)


@pytest.mark.parametrize(("version", "header"), [(1, "00000007"), (9, "00000007 00")])
def test_a_response(version: int, header: str) -> None:
    response = MetadataResponse(cluster_id="c")
    body = encode(response, version)
    prefix = bytes.fromhex(header)
    parts = encode_response(ApiKey.METADATA, version, 7, response)
    assert parts == [struct.pack(">i", len(prefix + body)) + prefix + body]
    assert read_response_header(prefix + body, ApiKey.METADATA, version) == (7, len(prefix))


@pytest.mark.parametrize("version", [0, 3, 4])
def test_answers_to_api_versions_have_the_old_header_always(version: int) -> None:
    response = ApiVersionsResponse()
    parts = encode_response(ApiKey.API_VERSIONS, version, 7, response)
    assert joined([*parts])[4:] == struct.pack(">i", 7) + encode(response, version)
    assert read_response_header(joined([*parts])[4:], ApiKey.API_VERSIONS, version) == (7, 4)


@pytest.mark.parametrize("version", [4, 12, 17])
def test_the_length_counts_regions(version: int) -> None:
    partitions = [PartitionData(records=FakeRegion(1000)), PartitionData(records=FakeRegion(24))]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    parts = encode_response(ApiKey.FETCH, version, 7, response)
    content = joined([*parts])
    (length,) = struct.unpack_from(">i", content)
    assert length == len(content) - 4 + 1024


def test_every_api_in_every_version_comes_back_out_of_its_frame() -> None:
    source = random.Random("frames")
    for kind in message_kinds():
        if kind.part == "data":
            continue
        lowest, highest = kind.versions
        for version in range(lowest, highest + 1):
            message: Message = random_pair(source, kind, version).ours
            key = kind.message_class.API_KEY
            if kind.part == "request":
                frame = joined([*encode_request(key, version, 1, "c", message)])
                position = 4 + read_request_header(frame[4:]).body_position
            else:
                frame = joined([*encode_response(key, version, 1, message)])
                position = 4 + read_response_header(frame[4:], key, version)[1]
            assert struct.unpack_from(">i", frame) == (len(frame) - 4,)
            assert decode(kind.message_class, frame, version, position) == (message, len(frame))
