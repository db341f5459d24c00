"""The offsets of a streaming query's source, as Spark stores them in its checkpoint.

    {"orders": {"0": 23, "1": 42}, "@headwater": {"bootstrap": "host:9092", "group": "billing"}}

An offset is that of the next record to read, as in Kafka. Topics look as in Spark's own connector.
The entry `@headwater`, which no topic can be called, tells whoever sees the offsets (a listener
that reports lag, a reader of checkpoints) which cluster they are of and which group asked for them.

Spark stores where a batch ends, and takes where it begins from the batch before. The first one has
none before it: after a crash in it the source would be asked again where to begin, and `latest`
would be somewhere else by then, behind records that nobody has read. So the end of the first batch
carries its beginning with it, as `"first": {"orders": {"0": 20, "1": 40}}` in the same entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.base.errors import InvalidConfigError
from headwater.base.ids import TopicPartition

HEADWATER_ENTRY: Final = "@headwater"
_BOOTSTRAP: Final = "bootstrap"
_GROUP: Final = "group"
_FIRST: Final = "first"


class OffsetJsonError(InvalidConfigError):
    """Text that is not the offsets of a source."""


@dataclass(frozen=True, slots=True)
class SourceOffsets:
    """Where a query stands in every partition that it reads."""

    positions: dict[TopicPartition, int] = field(default_factory=dict)
    bootstrap_servers: str = ""
    group: str = ""
    #: Where the batch begins that ends here, if it is the first one of its query.
    first: dict[TopicPartition, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """In a fixed order, because Spark compares offsets by their text."""
        about: dict[str, Any] = {_BOOTSTRAP: self.bootstrap_servers, _GROUP: self.group}
        if self.first is not None:
            about[_FIRST] = _topics(self.first)
        return {**_topics(self.positions), HEADWATER_ENTRY: about}

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> SourceOffsets:
        """The inverse of `to_json`; the offsets of Spark's own connector are read too."""
        try:
            loaded = json.loads(value) if isinstance(value, str) else value
            topics = {**loaded}
            about = topics.pop(HEADWATER_ENTRY, {})
            first = about.get(_FIRST)
            return cls(
                _positions(topics),
                str(about.get(_BOOTSTRAP, "")),
                str(about.get(_GROUP, "")),
                None if first is None else _positions(first),
            )
        except (ValueError, TypeError, AttributeError):
            raise OffsetJsonError(
                f"{value!r} is not the offsets of a source: they look like "
                '{"orders": {"0": 23, "1": 42}}.'
            ) from None


def _topics(positions: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def _positions(topics: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, numbers in topics.items()
        for number, offset in numbers.items()
    }
