"""Which number a broker has: the configured one, the one it had before, or a new one."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.settings import SettingError
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.identity import generate_broker_id
from headwater.cluster.store.metadata_store import MetadataStore
from headwater.storage.directories.broker_metadata import read_broker_metadata
from headwater.storage.disk.files import FileSystem


async def find_node_id(
    settings: BrokerSettings, store: MetadataStore, files: FileSystem, directories: Iterable[str]
) -> int:
    """This broker's id; a made-up one stays with its log directories from then on."""
    if settings.broker_id >= 0:
        return settings.broker_id
    for directory in directories:
        metadata = read_broker_metadata(files, directory)
        if metadata is not None and metadata.node_id is not None:
            return metadata.node_id
    if not settings.boolean("broker.id.generation.enable"):
        raise SettingError("broker.id is not set, and broker.id.generation.enable is false.")
    return await generate_broker_id(store, settings.integer("reserved.broker.max.id"))
