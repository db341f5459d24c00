"""What every log of a broker needs from the broker: its disk, its handles, its settings.

It is made once, at start, from the broker's settings. A topic's own settings are asked for when one
of its logs is opened or made; whoever changes them later gives the logs their new `LogConfig`.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from headwater.base.settings import SettingValues
from headwater.storage.disk.files import FileSystem
from headwater.storage.disk.handles import HandleCache
from headwater.storage.log_config import LogConfig
from headwater.storage.log_settings import make_log_config
from headwater.storage.producers.state import PRODUCER_ID_EXPIRATION_MS


def _no_overrides(_topic: str) -> Mapping[str, str]:
    return {}


@dataclass(slots=True)
class LogEnvironment:
    files: FileSystem
    handles: HandleCache
    random_source: random.Random
    #: The settings of a topic by its name.
    config_of: Callable[[str], LogConfig]
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS
    #: How many threads each directory has for closing logs, which is mostly waiting for its disk.
    close_thread_count: int = 1
    #: What each directory sets aside for when its disk is full.
    reserve_bytes: int = 0
    #: The directories that get no new logs, as it is at any moment.
    cordoned_paths: Callable[[], Collection[str]] = tuple

    @classmethod
    def from_settings(
        cls,
        broker: SettingValues,
        files: FileSystem,
        random_source: random.Random,
        overrides_of: Callable[[str], Mapping[str, str]] = _no_overrides,
    ) -> LogEnvironment:
        """The environment that a broker's settings describe; `overrides_of` has the topics'."""
        shared = make_log_config(broker)

        def config_of(topic: str) -> LogConfig:
            overrides = overrides_of(topic)
            if not overrides:
                return shared  # One object for the many topics that set nothing.
            return make_log_config(broker, overrides, f"the topic {topic}")

        return cls(
            files,
            HandleCache(files, broker.integer("log.handles.max")),
            random_source,
            config_of,
            broker.integer("producer.id.expiration.ms"),
            broker.integer("num.recovery.threads.per.data.dir"),
            broker.integer("log.dir.reserve.bytes"),
        )

    def new_id(self) -> uuid.UUID:
        return uuid.UUID(int=self.random_source.getrandbits(128), version=4)
