"""Completes topics whose creation or growth was interrupted between two transactions.

Their nodes name all partitions, but some of these have no state. They have never been led, and so
hold nothing: they begin as new partitions do.
"""

from __future__ import annotations

from headwater.cluster.controller.writes import ControllerWrites
from headwater.cluster.image.change import ImageEdits
from headwater.cluster.image.image import ClusterImage, TopicImage
from headwater.cluster.store.metadata_store import Operation
from headwater.cluster.topics.creation import new_partitions, with_partitions


def unwritten_partitions(topic: TopicImage) -> list[int]:
    """The partitions that have no state in the store."""
    return [number for number, partition in enumerate(topic.partitions) if not partition.isr]


async def complete_topics(writes: ControllerWrites, image: ClusterImage) -> ClusterImage:
    """Write the states that are missing; returns the image with them. Raises KafkaError."""
    edits = ImageEdits()
    transactions: dict[tuple[str, int], list[Operation]] = {}
    for topic in image.topics.values():
        missing = unwritten_partitions(topic)
        if not missing:
            continue
        replicas = [topic.partitions[number].replicas for number in missing]
        added = dict(zip(missing, new_partitions(replicas, image.brokers, ()), strict=True))
        edits.partitions[topic.name] = added
        batches = with_partitions([], topic.name, added, writes.epoch)
        transactions.update(((topic.name, index), batch) for index, batch in enumerate(batches))
    if edits.is_empty:
        return image
    for error in (await writes.multi_each(transactions)).values():
        raise error
    return edits.apply(image).image
