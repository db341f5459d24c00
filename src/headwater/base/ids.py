"""What partitions and topics are called, on the wire, on disk and in the text that people see."""

import base64
import re
import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from headwater.base.errors import InvalidTopicError

TOPIC_NAME_LENGTH_MAX: Final = 249
PARTITION_MAX: Final = 2**31 - 1

# Topic ids that stand for something else: "no id", and the topic of KRaft's own metadata log.
ZERO_TOPIC_ID: Final = uuid.UUID(int=0)
METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
METADATA_TOPIC: Final = "__cluster_metadata"
#: How the topics of delay services begin, which clients write to though they are internal.
DELAY_TOPIC_PREFIX: Final = "__delay_"
#: Where traced clients write what they do with records.
TRACE_TOPIC: Final = "__trace"

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
# Only the canonical spelling of a number is accepted ("3", not "03"), so that no two directories
# can claim to hold the same partition.
_DIRECTORY_NAME = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})", re.ASCII | re.DOTALL)


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def from_directory_name(cls, name: str) -> "TopicPartition":
        """The inverse of `str()`; raises `ValueError` when `name` is no partition's directory."""
        match = _DIRECTORY_NAME.fullmatch(name)
        if match is None or int(match[2]) > PARTITION_MAX or _topic_name_fault(match[1]):
            raise ValueError(
                f"{name!r} is not the directory of a partition: it should be a topic name, a dash "
                "and a partition number, as in 'orders-0'."
            )
        return cls(match[1], int(match[2]))


def validate_topic_name(name: str) -> None:
    """Raise `InvalidTopicError` unless `name` may be the name of a topic."""
    fault = _topic_name_fault(name)
    if fault is not None:
        raise InvalidTopicError(fault)


def _topic_name_fault(name: str) -> str | None:
    if not name:
        return "A topic name cannot be empty."
    if name in (".", ".."):
        return f"A topic cannot be called {name!r}, because that names a directory."
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return (
            f"The topic name {name[:32]!r}... has {len(name)} characters, and at most "
            f"{TOPIC_NAME_LENGTH_MAX} are allowed."
        )
    if _TOPIC_NAME.fullmatch(name) is None:
        return (
            f"The topic name {name!r} has a character other than ASCII letters, digits, '.', '_' "
            "and '-'."
        )
    return None


def topic_id_to_text(topic_id: uuid.UUID) -> str:
    """The 22 characters of url-safe base64 that Kafka writes and prints for a topic id."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode("ascii")


def topic_id_from_text(text: str) -> uuid.UUID:
    """The inverse of `topic_id_to_text`; raises `ValueError` for anything it cannot have made."""
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"==")
        topic_id = uuid.UUID(bytes=raw)
    except ValueError:
        topic_id = None
    # The decoder forgives foreign characters and spare bits; the way back shows whether it did.
    if topic_id is None or topic_id_to_text(topic_id) != text:
        raise ValueError(
            f"{text!r} is not a topic id: it should be 22 characters of url-safe base64."
        )
    return topic_id


def new_topic_id(draw_uuid: Callable[[], uuid.UUID]) -> uuid.UUID:
    """Draw until the id is fit for a topic.

    A reserved id would mean something else, and text that begins with a dash would look like an
    option on a command line.
    """
    while True:
        topic_id = draw_uuid()
        reserved = topic_id in (ZERO_TOPIC_ID, METADATA_TOPIC_ID)
        if not reserved and not topic_id_to_text(topic_id).startswith("-"):
            return topic_id
