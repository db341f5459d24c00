"""Whatever the bytes are, a decoder gives a message or `MalformedMessageError`, and stays small."""

import random
import tracemalloc

import pytest

from headwater.wire.codec import MalformedMessageError, decode, encode
from headwater.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headwater.wire.messages.metadata import MetadataRequest
from tests.support.tiers import rounds
from tests.support.values.kio_messages import MessageKind, message_kinds, random_pair

KINDS = list(message_kinds())

# Bytes that are lengths of some kind, mostly too large ones.
LENGTHS = [
    bytes.fromhex(text)
    for text in (
        "7fffffff",
        "80000000",
        "ffffffff",
        "ffffffff0f",
        "ffffffffff",
        "ffffffff7f",
        "7fff",
        "8000",
        "00",
        "80",
        "0000ffff",
    )
]


def mutated(source: random.Random, content: bytes) -> bytes:
    """The content with something overwritten, put in, taken out or turned around."""
    data = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        position = source.randrange(len(data) + 1)
        match source.randrange(5):
            case 0:
                length = source.choice(LENGTHS)
                data[position : position + len(length)] = length
            case 1:
                data[position:position] = source.choice(LENGTHS)
            case 2:
                del data[position : position + source.randrange(1, 9)]
            case 3:
                data[position : position + 1] = source.randbytes(1)
            case _:
                data[position:position] = data[: source.randrange(1, 40)]
    return bytes(data)


def decode_or_refuse(kind: MessageKind, content: bytes, version: int) -> bool:
    """Whether it could be decoded; a message that could be must survive being written again."""
    try:
        message, position = decode(kind.message_class, content, version)
    except MalformedMessageError:
        return False
    assert position <= len(content)
    again, _ = decode(kind.message_class, encode(message, version), version)
    # NaN is not equal to itself, and so shows the same instead.
    assert again == message or repr(again) == repr(message)
    return True


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mutated_messages(kind: MessageKind) -> None:
    source = random.Random(f"mutated {kind}")
    lowest, highest = kind.versions
    for _ in range(rounds(60, 3000)):
        version = source.choice((highest, source.randint(lowest, highest)))
        content = encode(random_pair(source, kind, version).ours, version)
        changed = mutated(source, content)
        decode_or_refuse(kind, changed, version)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_random_bytes(kind: MessageKind) -> None:
    source = random.Random(f"random {kind}")
    lowest, highest = kind.versions
    for _ in range(rounds(100, 5000)):
        version = source.randint(lowest, highest)
        few = bytes(source.choices((0, 1, 2, 3, 255), k=source.randrange(60)))
        any_bytes = source.randbytes(source.randrange(60))
        decode_or_refuse(kind, source.choice((few, any_bytes)), version)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_message_that_is_cut_short_is_malformed(kind: MessageKind) -> None:
    source = random.Random(f"short {kind}")
    lowest, highest = kind.versions
    for version in {lowest, source.randint(lowest, highest), highest}:
        content = encode(random_pair(source, kind, version).ours, version)
        for size in sorted(source.sample(range(len(content)), min(len(content), rounds(30, 300)))):
            with pytest.raises(MalformedMessageError):
                decode(kind.message_class, content[:size], version)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_claims_of_huge_arrays_allocate_nothing_of_note(kind: MessageKind) -> None:
    source = random.Random(f"memory {kind}")
    version = kind.versions.highest
    content = encode(random_pair(source, kind, version).ours, version)
    decode(kind.message_class, content, version)
    hostile = [
        content[:position] + length + content[position:]
        for position in source.sample(range(len(content) + 1), min(len(content), rounds(10, 200)))
        for length in LENGTHS[:7]
    ]
    tracemalloc.start()
    try:
        for each in hostile:
            decode_or_refuse(kind, each, version)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What has been decoded, its repetition and tracebacks: a claim of two billion would show.
    assert peak_bytes < 500_000 + 200 * len(content)


def test_the_densest_message_takes_memory_in_proportion() -> None:
    # A topic with an empty name: two bytes on the wire.
    count = 20_000
    content = bytes([(count + 1) & 0x7F | 0x80, (count + 1) >> 7 & 0x7F | 0x80, (count + 1) >> 14])
    content += b"\x01\x00" * count + b"\x01\x00\x00\x00"
    tracemalloc.start()
    try:
        message, _ = decode(MetadataRequest, content, 9)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message.topics is not None
    assert len(message.topics) == count
    assert peak_bytes < 60 * len(content)


def test_records_are_not_copied_however_large() -> None:
    partition = PartitionData(records=bytes(5_000_000))
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    content = encode(response, 12)
    tracemalloc.start()
    try:
        decoded, _ = decode(FetchResponse, content, 12)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded == response
    assert peak_bytes < 1_000_000
