"""How `headwater consume` prints what coordinators store in their topics.

Committed offsets have a line of their own, as Kafka's notes and older tools show them:

    [group,topic,partition]::[OffsetMetadata[42,NO_METADATA],CommitTime t,ExpirationTime t]

Everything else, and offsets too if JSON is asked for, is printed as the tools of Kafka 4 do: the
key with its type, the value with its version. A record of another kind prints nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headwater.cli.output.message_json import message_json
from headwater.client.consumer.record import ConsumerRecord
from headwater.coordinator.group.classic.stored.record import (
    GROUP_METADATA_KEY_VERSION,
    GroupMetadataKey,
    GroupMetadataValue,
)
from headwater.coordinator.group.offsets.record import (
    NO_EXPIRY,
    OFFSET_KEY_VERSIONS,
    OffsetCommitKey,
    OffsetCommitValue,
)
from headwater.coordinator.stored_record import decode_versioned, read_version
from headwater.coordinator.txn.transaction_record import (
    TRANSACTION_KEY_VERSION,
    TransactionLogKey,
    TransactionLogValue,
)
from headwater.wire.codec import MalformedMessageError
from headwater.wire.schema import Message

UNKNOWN: Final = "unknown"
#: What Kafka's tools show if a record says that what its key names is gone.
GONE: Final = "NULL"
NO_METADATA: Final = "NO_METADATA"


class StoredKind(NamedTuple):
    """A kind of stored record: the classes of its key, by version, and of its value."""

    keys: Mapping[int, type[Message]]
    value: type[Message]


OFFSETS: Final = StoredKind(dict.fromkeys(OFFSET_KEY_VERSIONS, OffsetCommitKey), OffsetCommitValue)
GROUP_METADATA: Final = StoredKind(
    {GROUP_METADATA_KEY_VERSION: GroupMetadataKey}, GroupMetadataValue
)
TRANSACTION_LOG: Final = StoredKind(
    {TRANSACTION_KEY_VERSION: TransactionLogKey}, TransactionLogValue
)


class OffsetsFormat:
    """A line for each committed offset."""

    def __init__(self, retention_ms: int) -> None:
        """The retention tells when an offset expires whose record does not say."""
        self._retention_ms = retention_ms

    def __call__(self, records: list[ConsumerRecord]) -> bytes:
        return "".join(map(self._line, records)).encode()

    def _line(self, record: ConsumerRecord) -> str:
        key = _decode_key(OFFSETS, record)
        if not isinstance(key, OffsetCommitKey):
            return ""
        shown = GONE if record.value is None else self._value(record.value)
        return f"[{key.group},{key.topic},{key.partition}]::{shown}\n"

    def _value(self, stored: bytes) -> str:
        try:
            value = decode_versioned(OffsetCommitValue, stored)
        except MalformedMessageError:
            return UNKNOWN
        expire_ms = value.expire_timestamp
        if expire_ms == NO_EXPIRY:
            expire_ms = value.commit_timestamp + self._retention_ms
        return (
            f"[OffsetMetadata[{value.offset},{value.metadata or NO_METADATA}],"
            f"CommitTime {value.commit_timestamp},ExpirationTime {expire_ms}]"
        )


class StoredJsonFormat:
    """An object for each record of a kind."""

    def __init__(self, kind: StoredKind) -> None:
        self._kind = kind

    def __call__(self, records: list[ConsumerRecord]) -> bytes:
        return "".join(map(self._line, records)).encode()

    def _line(self, record: ConsumerRecord) -> str:
        key = _decode_key(self._kind, record)
        if key is None or record.key is None:
            return ""
        key_version = read_version(record.key)
        described = {
            "key": {"type": key_version, "data": message_json(key, key_version)},
            "value": None if record.value is None else self._value(record.value),
        }
        return json.dumps(described, ensure_ascii=False, separators=(",", ":")) + "\n"

    def _value(self, stored: bytes) -> dict[str, Any]:
        version: int | None = None
        try:
            version = read_version(stored)
            value = decode_versioned(self._kind.value, stored)
        except MalformedMessageError:
            return {"version": version, "data": UNKNOWN}
        return {"version": version, "data": message_json(value, version)}


def _decode_key(kind: StoredKind, record: ConsumerRecord) -> Message | None:
    """The key of a record of this kind; None for all others."""
    if record.key is None:
        return None
    try:
        key_class = kind.keys.get(read_version(record.key))
        return None if key_class is None else decode_versioned(key_class, record.key)
    except MalformedMessageError:
        return None
