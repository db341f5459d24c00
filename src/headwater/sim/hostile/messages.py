"""Random instances of the protocol's messages, from their own tables of fields.

Values are drawn so that some requests get far: names of topics that exist, small numbers, settings
that there are. Others are extreme: the ends of a number's range, empty and very long strings, names
that are no names. The same seed gives the same messages.
"""

import random
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from headwater.wire.delayed.headers import (
    DELAY_HEADER,
    DELAY_ID_HEADER,
    DELIVER_AT_HEADER,
    EXPIRE_AT_HEADER,
)
from headwater.wire.records import Compression, Record, encode_batch
from headwater.wire.records.batch_header import ATTRIBUTES_POSITION, write_crc
from headwater.wire.schema import ZERO_UUID, Field, Message, Struct

#: Nested arrays get shorter, so that a message does not grow out of hand.
_ARRAY_LENGTHS: Final = ((0, 1, 1, 2, 5), (0, 1, 1, 2), (0, 1, 2), (0, 1))
#: Some messages say one thing a thousand times.
_REPEATED_SHARE: Final = 0.02
_REPEATED_COUNT: Final = 1_000
_INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SETTING_NAMES: Final = (
    "retention.ms",
    "cleanup.policy",
    "segment.bytes",
    "compression.type",
    "max.message.bytes",
    "min.insync.replicas",
    "no.such.setting",
    "log.retention.ms",
)
#: Fields that get numbers of their own. For some, any number would stop every request early; for
#: others it would do harm of the wrong kind: ten thousand partitions that are really made, a wait
#: that lasts for weeks.
_NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "num_partitions": (1, 1, 2, 3, -1, 0, -2, 10_001, 2**31 - 1),
    "count": (1, 2, 3, 4, -1, 0, 20_000, 2**31 - 1),
    "replication_factor": (1, 1, 1, -1, 0, 2, 2**15 - 1),
    "broker_ids": (0, 0, 0, 0, 1, -1),
    "partition_index": (0, 0, 0, 0, 1, 2, -1, 2**31 - 1),
    "partition": (0, 0, 0, 0, 1, 2, -1, 2**31 - 1),
    "index": (0, 0, 0, 0, 1, 2, -1, 2**31 - 1),
    "max_wait_ms": (0, 1, 20, -1, 2**31 - 1),
    "timeout_ms": (1000, 1000, 10_000, 0, -1, 2**31 - 1),
    "current_leader_epoch": (-1, -1, -1, 0, 0, 1, -5),
    "last_fetched_epoch": (-1, -1, -1, 0, 1),
    "fetch_offset": (0, 0, 0, 1, 5, -1, 2**63 - 1),
    "session_epoch": (-1, -1, 0, 1),
    "isolation_level": (0, 0, 1, 9),
    "acks": (1, 1, 1, -1, -1, 0, 5),
    "replica_id": (-1, -1, -1, -2, 1),
    "endpoint_type": (1, 1, 2, 9),
    "resource_type": (2, 2, 2, 4, 8, 0, 1, 16, 127),
    "config_operation": (0, 0, 1, 2, 3, 9),
}
#: What records ask of a topic that has delays.
_DELAYS: Final = (b"1h", b"40d", b"50ms", b"1e999", b"-1", b"cancel", b"", b"\xff", b"9" * 400)
_SETTING_VALUES: Final = ("-1", "0", "1", "1000", "delete", "compact", "zstd", "producer", "x", "")


class RandomMessages:
    """Draws messages that talk about the topics of a pool."""

    def __init__(
        self, source: random.Random, topics: Sequence[str], topic_ids: Sequence[uuid.UUID] = ()
    ) -> None:
        self._random = source
        self._topics = self._named = topics
        self._topic_ids = (*topic_ids, ZERO_UUID, uuid.UUID(int=source.getrandbits(128)))
        self._by_kind: dict[str, Callable[[str], object]] = {
            "bool": lambda name: source.random() < 0.5,
            "bytes": lambda name: source.randbytes(source.choice((0, 1, 20, 300))),
            "float64": lambda name: source.choice((0.0, -1.5, 1e300, float("inf"))),
            "uint16": lambda name: source.choice((0, 1, 9092, 65_535)),
            "uuid": lambda name: source.choice(self._topic_ids),
            "records": lambda name: self.records(),
            "string": self._string,
        }

    def message(self, message_class: type[Message], version: int) -> Message:
        """An instance; the fields that the version lacks keep their defaults."""
        message = message_class()
        # Of the topics only the last may be deleted, or there would soon be none to talk about.
        self._named = (
            self._topics[-1:] if "DeleteTopics" in message_class.__name__ else self._topics
        )
        self._fill(message, version, 0)
        return message

    def _fill(self, struct: Struct, version: int, depth: int) -> None:
        for field in struct.FIELDS:
            if field.exists_in(version):
                setattr(struct, field.name, self._value(field, version, depth))

    def _value(self, field: Field, version: int, depth: int) -> object:
        if field.is_nullable_in(version):
            usually_null = field.name in ("transactional_id", "assignments", "configuration_keys")
            if self._random.random() < (0.7 if usually_null else 0.15):
                return None
        if not field.array:
            return self._single(field, version, depth)
        if depth == 0 and self._random.random() < _REPEATED_SHARE:
            return [self._single(field, version, depth + 1)] * _REPEATED_COUNT
        lengths = _ARRAY_LENGTHS[min(depth, len(_ARRAY_LENGTHS) - 1)]
        return [
            self._single(field, version, depth + 1) for _ in range(self._random.choice(lengths))
        ]

    def _single(self, field: Field, version: int, depth: int) -> object:
        kind = field.kind
        if isinstance(kind, str):
            bits = _INTEGER_BITS.get(kind)
            if field.name in _NUMBERS:
                return self._random.choice(_NUMBERS[field.name])
            return self._by_kind[kind](field.name) if bits is None else self._integer(bits)
        struct = kind()
        self._fill(struct, version, depth + 1)
        return struct

    def _integer(self, bits: int) -> int:
        lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        # Small numbers name partitions, brokers and versions that exist.
        draw = self._random.random()
        if draw < 0.7:
            return self._random.choice((0, 0, 0, 1, 1, 2, -1))
        if draw < 0.9:
            return self._random.randint(max(lowest, -100), min(highest, 10_000))
        return self._random.choice((lowest, highest, highest - 1, -2, -3, -5))

    def _string(self, field_name: str) -> str:
        draw = self._random.random()
        if draw < 0.05:
            return self._random.choice(("", " ", ".", "..", "\x00", "\u20ac" * 50, "a/b"))
        if draw < 0.08:
            return "x" * self._random.choice((249, 250, 5_000, 32_767))
        if "topic" in field_name or (field_name == "name" and draw < 0.7):
            return self._random.choice(self._named)
        if field_name == "resource_name" and draw < 0.7:
            return self._random.choice(("0", "", *self._named))
        if field_name in ("name", "config_name", "configuration_keys"):
            return self._random.choice(_SETTING_NAMES)
        if field_name in ("value", "config_value"):
            return self._random.choice(_SETTING_VALUES)
        return self._random.choice(("0", "client", *self._topics))

    def _headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """None, or those of delayed delivery."""
        source = self._random
        if source.random() < 0.7:
            return ()
        names = (DELAY_HEADER, DELIVER_AT_HEADER, EXPIRE_AT_HEADER, DELAY_ID_HEADER)
        return tuple(
            (name, source.choice((*_DELAYS, None))) for name in names if source.random() < 0.5
        )

    def records(self) -> bytes:
        """A record batch, valid or nearly so, or noise."""
        source = self._random
        draw = source.random()
        if draw < 0.1:
            return source.randbytes(source.choice((0, 1, 60, 61, 200)))
        producer_id = source.choice((-1, -1, 0, 1, 2**63 - 1))
        batch = bytearray(
            encode_batch(
                [
                    Record(number, 1_700_000_000_000 + number, b"key", b"fuzz", self._headers())
                    for number in range(source.randint(1, 5))
                ],
                compression=source.choice(list(Compression)),
                producer_id=producer_id,
                producer_epoch=-1 if producer_id < 0 else source.choice((0, 0, 1, -1)),
                base_sequence=-1 if producer_id < 0 else source.choice((0, 0, 1, 5, 2**31 - 1)),
                transactional=source.random() < 0.1,
                control=source.random() < 0.05,
            )
        )
        if draw < 0.4:
            # Something behind the checksum is wrong, and the checksum does not tell.
            for _ in range(source.randint(1, 3)):
                position = source.randrange(ATTRIBUTES_POSITION, len(batch))
                batch[position] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))
            write_crc(batch, 0, len(batch))
        elif draw < 0.6:
            batch[source.randrange(len(batch))] ^= 1 << source.randrange(8)
        return bytes(batch)
