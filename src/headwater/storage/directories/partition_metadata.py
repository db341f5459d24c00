"""`partition.metadata`: which topic a partition's directory belongs to, by id.

    version: 0
    topic_id: UYOlQjoMQRCkjBcXnHMCAg

A directory is named after the topic, and a name can be used again: this file is what tells the log
of a deleted topic from that of its successor. It is durable before the first record is written. As
in Kafka, no line break follows the last line.
"""

from __future__ import annotations

import re
import uuid
from typing import Final

from headwater.base.checks import check
from headwater.base.ids import ZERO_TOPIC_ID, topic_id_from_text, topic_id_to_text
from headwater.storage.checkpoints import parse_integer
from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically
from headwater.storage.errors import CorruptMetadataError, InconsistentTopicIdError

PARTITION_METADATA: Final = "partition.metadata"
VERSION: Final = 0
_FIELD: Final = re.compile(r"\w+:\s+(\S+)", re.ASCII)


def read_topic_id(files: FileSystem, directory: str) -> uuid.UUID | None:
    """The id of the topic, None if the directory has no metadata."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        data = read_bytes(files, path)
    except FileNotFoundError:
        return None
    try:
        return _parse(data.decode("utf-8"))
    except ValueError as error:
        raise CorruptMetadataError(f"{path}: {str(error).rstrip('.')}.") from error


def _parse(text: str) -> uuid.UUID:
    fields = [_FIELD.fullmatch(line) for line in text.splitlines()[:2]]
    if len(fields) < 2 or fields[0] is None or fields[1] is None:
        raise ValueError("it should have a line with a version and one with a topic id")
    version = parse_integer(fields[0][1], 32)
    if version != VERSION:
        raise ValueError(f"version {version} is not known")
    topic_id = topic_id_from_text(fields[1][1])
    if topic_id == ZERO_TOPIC_ID:
        raise ValueError("the topic id is zero, which no topic has")
    return topic_id


def write_topic_id(files: FileSystem, directory: str, topic_id: uuid.UUID) -> None:
    """Record the topic's id durably, once; a directory never changes its topic."""
    check(topic_id != ZERO_TOPIC_ID, "%s: zero is no topic's id", directory)
    known = read_topic_id(files, directory)
    if known == topic_id:
        return
    if known is not None:
        raise InconsistentTopicIdError(
            f"{directory} belongs to the topic with id {topic_id_to_text(known)}, not to the one "
            f"with id {topic_id_to_text(topic_id)}."
        )
    text = f"version: {VERSION}\ntopic_id: {topic_id_to_text(topic_id)}"
    write_atomically(files, f"{directory}/{PARTITION_METADATA}", text.encode())
