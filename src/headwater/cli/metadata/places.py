"""Which metadata store is meant, and how it is opened: as the broker does whose store it is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from headwater.base.clocks import SystemClock
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cli.serve.settings import serve_settings
from headwater.cluster.store.embedded.sqlite_journal import METADATA_FILE, SqliteJournal
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.cluster.store.errors import StoreError, StoreFileError
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.storage.log_settings import log_directory_paths

#: A broker waits for ZooKeeper as long as that takes; somebody at a keyboard does not.
_CONNECTION_TIMEOUT_MS: Final = 30_000
_CONNECTION_TIMEOUT: Final = "zookeeper.connection.timeout.ms"


class Place(NamedTuple):
    """Where a metadata store is."""

    #: As people call it.
    name: str
    #: The directory of an embedded one; else it is the ZooKeeper of the settings.
    directory: str | None
    settings: BrokerSettings

    @property
    def is_zookeeper(self) -> bool:
        return self.directory is None

    @property
    def path(self) -> str:
        return os.path.join(self.directory or "", METADATA_FILE)


def place_of(
    data_dir: str | None,
    zookeeper: str | None,
    config_path: str | None,
    environment: Mapping[str, str],
) -> Place:
    """The place that options name; raises `SettingError`, or the `OSError` of the file."""
    values = serve_settings(
        listen=[],
        data_dirs=[] if data_dir is None else [data_dir],
        broker_id=None,
        zookeeper=zookeeper,
        config_path=config_path,
        assignments=[],
        environment=environment,
    )
    if _CONNECTION_TIMEOUT not in values.sources:
        timeout = {_CONNECTION_TIMEOUT: str(_CONNECTION_TIMEOUT_MS)}
        values = values.with_overrides(timeout, "the command line")
    settings = BrokerSettings(values)
    address = settings.optional_text("zookeeper.connect")
    if data_dir is not None or not address:
        directory = log_directory_paths(values)[0]
        return Place(os.path.join(directory, METADATA_FILE), directory, settings)
    return Place(f"ZooKeeper at {address}", None, settings)


@asynccontextmanager
async def opened(place: Place, *, may_create: bool = False) -> AsyncIterator[MetadataStore]:
    """A session with the store; what it refuses is raised as a KafkaError with a sentence."""
    try:
        if place.is_zookeeper:
            # Not imported for a broker that stands alone.
            from headwater.broker.start.zookeeper import zookeeper_connector

            connector = zookeeper_connector(place.settings)
            try:
                yield await connector.connect()
            finally:
                await connector.close()
            return
        if may_create:
            os.makedirs(place.directory or ".", exist_ok=True)
        elif not os.path.exists(place.path):
            raise KafkaError(
                ErrorCode.RESOURCE_NOT_FOUND,
                f"There is no {place.path}: the first data directory of a broker that stands alone "
                "has it, or DIR of `headwater serve --brokers`.",
            )
        journal = SqliteJournal(place.path, asyncio.to_thread)
        store = await EmbeddedStore.open(journal, SystemClock())
        try:
            yield store.connect()
        finally:
            await store.close()
    except StoreFileError as error:
        in_use = " Stop the broker first." if "in use" in str(error) else ""
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{error}{in_use}") from error
    except StoreError as error:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{error} Run the same command again."
        ) from error
