"""What stands in a log directory, by name.

    orders-0                                          a partition's log
    orders-0.<id>-future                              a copy that is to take its place, in another
                                                      directory
    orders-0.<id>-delete                              a log that was deleted, waiting to be removed
    orders-0.<id>-stray                               a log that nobody asked for: kept, not served
    __cluster_metadata-0                              KRaft's own log: not ours to touch
    meta.properties, .lock, *-checkpoint, ...         files

The id is 32 hexadecimal digits, which keeps names apart when a partition is deleted twice. A
topic's name may contain dashes and dots, so the partition is what follows the last dash. As file
systems allow 255 bytes for a name, the name of a deleted or stray log has its topic cut short; a
future log must keep it whole, because it becomes the partition's log.

Only what has exactly such a name is ever made, renamed or removed: all these paths come from
`entry_path`, so none leads out of the log directory. Everything else is foreign: it is reported and
left alone. An entry that is a symbolic link is followed, as Kafka does: whoever put it there rules
over the disk anyway.
"""

from __future__ import annotations

import re
import uuid
from enum import Enum
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import METADATA_TOPIC, TopicPartition
from headwater.storage.disk.files import FileSystem

NAME_LENGTH_MAX: Final = 255
CLUSTER_METADATA: Final = TopicPartition(METADATA_TOPIC, 0)


class EntryKind(Enum):
    """What an entry of a log directory is; the values of the first four end its name."""

    LOG = ""
    FUTURE = "-future"
    DELETED = "-delete"
    STRAY = "-stray"
    CLUSTER_METADATA = "metadata"
    FOREIGN = "foreign"


class DirectoryEntry(NamedTuple):
    """One directory in a log directory; `partition` is None for what is not a partition's."""

    name: str
    kind: EntryKind
    partition: TopicPartition | None = None


_SUFFIXED: Final = re.compile(r"(.+)\.[0-9a-f]{32}(-future|-delete|-stray)", re.ASCII | re.DOTALL)


def parse_directory_name(name: str) -> DirectoryEntry:
    """What the directory of this name is."""
    suffixed = _SUFFIXED.fullmatch(name)
    kind = EntryKind.LOG if suffixed is None else EntryKind(suffixed[2])
    try:
        partition = TopicPartition.from_directory_name(name if suffixed is None else suffixed[1])
    except ValueError:
        return DirectoryEntry(name, EntryKind.FOREIGN)
    if partition.topic == CLUSTER_METADATA.topic:
        return DirectoryEntry(name, EntryKind.CLUSTER_METADATA, partition)
    return DirectoryEntry(name, kind, partition)


def list_entries(files: FileSystem, directory: str) -> list[DirectoryEntry]:
    """Every directory in a log directory, in the order of names; files are none of them."""
    return [
        parse_directory_name(name)
        for name in files.list_dir(directory)
        if files.is_dir(f"{directory}/{name}")
    ]


def entry_path(directory: str, name: str) -> str:
    """Where the log of this name is in a log directory; KafkaError if no log may have the name."""
    if parse_directory_name(name).kind in (EntryKind.FOREIGN, EntryKind.CLUSTER_METADATA):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:NAME_LENGTH_MAX]!r} cannot be the name of a partition's directory.",
        )
    return f"{directory}/{name}"


def log_name(partition: TopicPartition) -> str:
    """The name of a partition's directory; an error if no file system could take it."""
    return _fitting(str(partition), partition)


def future_name(partition: TopicPartition, unique_id: uuid.UUID) -> str:
    return _fitting(f"{partition}.{unique_id.hex}{EntryKind.FUTURE.value}", partition)


def deleted_name(partition: TopicPartition, unique_id: uuid.UUID) -> str:
    return _shortened(partition, f".{unique_id.hex}{EntryKind.DELETED.value}")


def stray_name(partition: TopicPartition, unique_id: uuid.UUID) -> str:
    return _shortened(partition, f".{unique_id.hex}{EntryKind.STRAY.value}")


def _fitting(name: str, partition: TopicPartition) -> str:
    if len(name) > NAME_LENGTH_MAX:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"The directory {name[:32]}... of partition {partition.partition} would have a name "
            f"of {len(name)} characters, and file systems allow {NAME_LENGTH_MAX}.",
        )
    return name


def _shortened(partition: TopicPartition, suffix: str) -> str:
    rest = f"-{partition.partition}{suffix}"
    return partition.topic[: NAME_LENGTH_MAX - len(rest)] + rest
