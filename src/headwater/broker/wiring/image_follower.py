"""What the broker does when the cluster image changes.

The order matters. Settings come first, so that the logs of a new topic are made with the topic's
own. Then partitions are made, changed and deleted. Existing logs get their new settings last. With
the first image of its life a broker takes up the logs that it has found on its disks.
"""

from __future__ import annotations

from collections.abc import Collection

from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.image.change import ImageChange
from headwater.cluster.image.image import ResourceKind
from headwater.delay.delays import Delays
from headwater.replication.partition.partitions import Partitions
from headwater.storage.directories.log_directories import LogDirectories


class ImageFollower:
    """A subscriber of the controller; a change is done when this has returned."""

    def __init__(
        self,
        settings: BrokerSettings,
        partitions: Partitions,
        directories: LogDirectories,
        delays: Delays,
    ) -> None:
        self._settings = settings
        self._partitions = partitions
        self._directories = directories
        self._delays = delays
        self._is_first = True

    async def __call__(self, change: ImageChange) -> None:
        broker_settings = self._settings.take_image(change.image)
        if self._is_first:
            self._is_first = False
            await self._partitions.load(change.image)
        else:
            await self._partitions.apply(change)
        self._settings.forget_topics(topic.name for topic in change.deleted_topics)
        if broker_settings:
            apply_log_settings(self._settings, self._directories)
            self._partitions.refresh_options()
            self._delays.settings_changed(self._partitions)
            return
        topics = {each.name for each in change.changed_configs if each.kind is ResourceKind.TOPIC}
        if topics:
            apply_log_settings(self._settings, self._directories, topics)
            self._partitions.refresh_options(sorted(topics))
            for topic in sorted(topics):
                self._delays.settings_changed(self._partitions.of_topic(topic).values())


def apply_log_settings(
    settings: BrokerSettings, directories: LogDirectories, topics: Collection[str] | None = None
) -> int:
    """Give open logs, of all topics or of some, the settings that hold now; how many got others.

    A log reads its `LogConfig` each time it matters, so a new one takes effect with the next
    append, read or round of the background tasks. Copies on their way to another directory follow
    too: they serve one day.
    """
    expiration_ms = settings.integer("producer.id.expiration.ms")
    thread_count = settings.integer("num.recovery.threads.per.data.dir")
    changed_count = 0
    for directory in directories.directories:
        directory.environment.producer_id_expiration_ms = expiration_ms
        directory.environment.close_thread_count = thread_count
        for log in directory.all_logs():
            topic = log.partition.topic
            if topics is not None and topic not in topics:
                continue
            log.producer_states.producer_id_expiration_ms = expiration_ms
            config = settings.topic_config(topic)
            if config is not log.config and config != log.config:
                log.config = config
                changed_count += 1
    return changed_count
