"""The way to ZooKeeper as a broker's settings describe it."""

from __future__ import annotations

from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.rows.cluster import (
    CONNECT,
    DIGEST_PASSWORD,
    DIGEST_USER,
    SET_ACL,
)
from headwater.cluster.store.zookeeper.connector import Digest, ZooKeeperConnector


def zookeeper_connector(settings: BrokerSettings) -> ZooKeeperConnector:
    """Connects to nothing yet; the connection timeout, if it is set, is for the first session."""
    user = settings.optional_text(DIGEST_USER)
    return ZooKeeperConnector(
        settings.text(CONNECT),
        session_timeout_ms=settings.integer("zookeeper.session.timeout.ms"),
        connection_timeout_ms=settings.values.optional_integer("zookeeper.connection.timeout.ms"),
        digest=Digest(user, settings.text(DIGEST_PASSWORD)) if user else None,
        set_acl=settings.boolean(SET_ACL),
    )
