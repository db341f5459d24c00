"""What a broker learns from the metadata store before it opens its logs, in its first session.

Brokers and their store lose power together, and come back in any order. So a store that is away is
waited for, and a session that ends meanwhile is followed by another, in which the broker asks anew:
nothing has come of what it heard before. How long to wait at most is the connector's to know.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headwater.base.settings import SettingError
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.cluster.identity import establish_cluster_id, generate_broker_id
from headwater.cluster.image.image import ClusterImage
from headwater.cluster.image.loader import load_image
from headwater.cluster.secret import establish_cluster_secret
from headwater.cluster.store.errors import SessionExpiredError, UncertainWriteError
from headwater.cluster.store.metadata_store import MetadataStore, StoreConnector
from headwater.storage.directories.broker_metadata import read_broker_metadata
from headwater.storage.disk.files import FileSystem

_logger = logging.getLogger(__name__)


class ClusterEntry(NamedTuple):
    session: MetadataStore
    cluster_id: str
    secret: bytes
    node_id: int
    #: Of which only settings count yet: the rest is the controller's to tell.
    image: ClusterImage


async def enter_cluster(
    connector: StoreConnector,
    settings: BrokerSettings,
    environment: BrokerEnvironment,
    directories: Sequence[str],
) -> ClusterEntry:
    """Ask until a session has lasted for all of it; a new cluster gets its id and secret here."""
    session = await connector.connect()
    while True:
        try:
            cluster_id = await establish_cluster_id(session, None, environment.random.uuid)
            secret = await establish_cluster_secret(session, environment.draw_secret_bytes)
            node_id = await find_node_id(settings, session, environment.files, directories)
            image = await load_image(session)
            return ClusterEntry(session, cluster_id, secret, node_id, image)
        except SessionExpiredError:
            _logger.warning(
                "The session with the metadata store ended while the broker started; "
                "another one begins."
            )
            session = await connector.connect()
        except UncertainWriteError:
            continue  # Whether it was done will be seen.


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
