"""A produce request for one partition, read and answered without an object for each of its levels.

Most produce requests are of this kind, and small ones come by the ten thousand a second, so that
the general codec's objects would cost more than the append. A flexible request (version 9 on) looks
like this where nothing is unusual; numbers are bytes:

    transactional id: null 1 | acks 2 | timeout 4 | topics: one 1 | topic: name or id
    | partitions: one 1 | index 4 | records: length 1-5, batch | no tags 1 | no tags 1 | no tags 1

and its answer, if all went well:

    topics: one 1 | topic: name or id | partitions: one 1 | index 4 | error 2 | base offset 8
    | append time 8 | log start 8 | no record errors 1 | no message 1 | no tags 1 | no tags 1
    | throttle time 4 | no tags 1

Whatever looks different is None here, and for `codec` to read, or to refuse.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

#: The oldest version that looks like this, and the first that names topics by their id.
FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13

_TOPIC_ID_SIZE: Final = 16
_START: Final = struct.Struct(">bhibb")
_PARTITION: Final = struct.Struct(">bi")
_ANSWER_START: Final = struct.Struct(">iibb")
_ANSWER_END: Final = struct.Struct(">bihqqqbbbbib")
_unpack_start = _START.unpack_from
_unpack_partition = _PARTITION.unpack_from
_ONE: Final = 2  # The number of elements of a compact array is one more than their count.
_NONE: Final = 1
_NULL: Final = 0
_NO_TAGS: Final = 0
_THREE_TIMES_NO_TAGS: Final = bytes(3)
#: The length in front of the answer does not count itself, nor does the topic stand in the structs.
_ANSWER_SIZE: Final = _ANSWER_START.size - 4 + _ANSWER_END.size


class SingleProduce(NamedTuple):
    acks: int
    timeout_ms: int
    #: Its bytes as they stand in the request: an id, or a name with its length in front.
    topic: bytes
    partition: int
    records: memoryview

    @property
    def topic_name(self) -> str:
        """For versions that give a name; bytes that are no text become one that no topic has."""
        return str(self.topic[1:], "utf-8", "replace")


def read_single_produce(frame: memoryview, position: int, version: int) -> SingleProduce | None:
    """The request whose body stands at `position`; None if it is of another kind."""
    try:
        transactional_id, acks, timeout_ms, topics, name_size = _unpack_start(frame, position)
        # Length and size, where they are below 64 or 128, are one byte of a varint.
        if transactional_id != _NULL or topics != _ONE:
            return None
        topic_position = position + _START.size - 1
        if version >= TOPIC_IDS_SINCE:
            topic_end = topic_position + _TOPIC_ID_SIZE
        elif name_size > 0:
            topic_end = topic_position + name_size
        else:
            return None
        partitions, partition = _unpack_partition(frame, topic_end)
        if partitions != _ONE:
            return None
        position = topic_end + _PARTITION.size
        size = 0
        shift = 0
        while (byte := frame[position]) & 0x80:
            size |= (byte & 0x7F) << shift
            shift += 7
            position += 1
            if shift > 28:
                return None
        size |= byte << shift
    except (struct.error, IndexError):
        return None
    start = position + 1
    end = start + size - 1
    if end < start or frame[end:] != _THREE_TIMES_NO_TAGS:
        return None
    topic = bytes(frame[topic_position:topic_end])
    return SingleProduce(acks, timeout_ms, topic, partition, frame[start:end])


def encode_single_answer(
    correlation_id: int, produce: SingleProduce, base_offset: int, log_start_offset: int
) -> bytes:
    """The whole answer to a request that succeeded, with its length in front."""
    topic = produce.topic
    return b"".join(
        (
            _ANSWER_START.pack(_ANSWER_SIZE + len(topic), correlation_id, _NO_TAGS, _ONE),
            topic,
            _ANSWER_END.pack(
                _ONE,
                produce.partition,
                0,
                base_offset,
                -1,
                log_start_offset,
                _NONE,
                _NULL,
                _NO_TAGS,
                _NO_TAGS,
                0,
                _NO_TAGS,
            ),
        )
    )
