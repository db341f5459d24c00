"""The step from one cluster image to the next, and what it touched."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from headwater.cluster.image.image import (
    BrokerInfo,
    ClusterImage,
    ConfigImage,
    ConfigResource,
    PartitionImage,
    TopicImage,
)
from headwater.cluster.image.layered_map import LayeredMap


@dataclass(frozen=True, slots=True)
class ImageChange:
    """A new image, and where it differs from the one before."""

    image: ClusterImage
    #: The topics that are new or have more partitions than before.
    changed_topics: frozenset[str] = frozenset()
    #: Of other topics, the partitions that have another leader, ISR or other replicas.
    changed_partitions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    #: The topics that are gone, as they were.
    deleted_topics: tuple[TopicImage, ...] = ()
    changed_configs: frozenset[ConfigResource] = frozenset()
    changed_brokers: frozenset[int] = frozenset()


@dataclass(slots=True)
class ImageEdits:
    """What shall be different; None stands for "no more"."""

    topics: dict[str, TopicImage | None] = field(default_factory=dict)
    configs: dict[ConfigResource, ConfigImage | None] = field(default_factory=dict)
    brokers: dict[int, BrokerInfo | None] = field(default_factory=dict)
    #: Of topics that are not in `topics`.
    partitions: dict[str, dict[int, PartitionImage]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.topics or self.partitions or self.configs or self.brokers)

    def apply(self, image: ClusterImage) -> ImageChange:
        """The image with the edits made; what they do not name is shared with the old one."""
        deleted = tuple(
            old
            for name, topic in self.topics.items()
            if (old := image.topics.get(name)) is not None
            # Another topic of the same name may have come meanwhile.
            and (topic is None or topic.topic_id != old.topic_id)
        )
        partly: dict[str, TopicImage | None] = {
            name: image.topics[name].with_partitions(changed)
            for name, changed in self.partitions.items()
        }
        topics = {**self.topics, **partly}
        return ImageChange(
            image=replace(
                image,
                version=image.version + 1,
                brokers=_edited(image.brokers, self.brokers),
                topics=image.topics.changed(topics) if topics else image.topics,
                topic_names=self._topic_names(image),
                configs=image.configs.changed(self.configs) if self.configs else image.configs,
            ),
            changed_topics=frozenset(n for n, topic in self.topics.items() if topic is not None),
            changed_partitions=MappingProxyType(
                {name: frozenset(changed) for name, changed in self.partitions.items()}
            ),
            deleted_topics=deleted,
            changed_configs=frozenset(self.configs),
            changed_brokers=frozenset(self.brokers),
        )

    def _topic_names(self, image: ClusterImage) -> LayeredMap[uuid.UUID, str]:
        names: dict[uuid.UUID, str | None] = {}
        for name, topic in self.topics.items():
            old = image.topics.get(name)
            if old is not None:
                names[old.topic_id] = None
            if topic is not None:
                names[topic.topic_id] = name
        return image.topic_names.changed(names) if names else image.topic_names


def _edited(
    brokers: Mapping[int, BrokerInfo], edits: Mapping[int, BrokerInfo | None]
) -> Mapping[int, BrokerInfo]:
    if not edits:
        return brokers
    merged = {**brokers, **edits}
    return {broker_id: info for broker_id, info in sorted(merged.items()) if info is not None}
