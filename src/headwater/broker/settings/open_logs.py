"""Lets logs that are open follow settings that have changed.

A log reads its `LogConfig` each time it matters, so a new one takes effect with the next append,
read or round of the background tasks. Copies on their way to another directory follow too: they
serve one day.
"""

from collections.abc import Collection

from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.storage.directories.log_directories import LogDirectories


def apply_log_settings(
    settings: BrokerSettings, directories: LogDirectories, topics: Collection[str] | None = None
) -> int:
    """Give logs, of all topics or of some, the settings that hold now; how many got others."""
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
