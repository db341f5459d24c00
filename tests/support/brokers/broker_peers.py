"""Connections of tests that speak as brokers: they know the cluster's secret, and prove it.

A broker in this process is asked for its secret; one in a process of its own finds in its data
directory what the test has put there.
"""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any, cast

from headwater.base.clocks import SystemClock
from headwater.broker.access.broker_proof import BrokerProof
from headwater.broker.context import BrokerContext
from headwater.cluster.identity import prepare_store
from headwater.cluster.secret import establish_cluster_secret
from headwater.cluster.store.embedded.sqlite_journal import METADATA_FILE, SqliteJournal
from headwater.cluster.store.embedded.store import EmbeddedStore
from headwater.net.peer_channel import PeerChannel
from headwater.sim.campaigns.broker_logs import run_inline
from headwater.wire.messages.metadata import MetadataRequest
from headwater.wire.schema import Message
from tests.support.other_clients.raw import RawConnection

_TIMEOUT_S = 30.0


def proof_of(context: BrokerContext, broker_id: int) -> BrokerProof:
    """The proof that another broker of this cluster would have."""
    return BrokerProof(context.proof._secret, context.cluster_id, broker_id, secrets.token_bytes)


async def prove(channel: PeerChannel, context: BrokerContext, broker_id: int) -> None:
    """Make a connection to a broker another broker's."""
    await proof_of(context, broker_id).exchange(channel, context.node_id, _TIMEOUT_S)


def plant_secret(data_dir: Path) -> bytes:
    """Draw the secret of a broker that has not started yet."""

    async def plant() -> bytes:
        journal = SqliteJournal(str(data_dir / METADATA_FILE), run_inline)
        store = await EmbeddedStore.open(journal, SystemClock())
        try:
            await prepare_store(store.connect())
            return await establish_cluster_secret(store.connect(), secrets.token_bytes)
        finally:
            await store.close()

    data_dir.mkdir(parents=True, exist_ok=True)
    return asyncio.run(plant())


def prove_raw(connection: RawConnection, secret: bytes, broker_id: int) -> None:
    """Make a connection to a broker that stands alone that broker's own."""
    cluster_id = connection.ask(MetadataRequest(topics=[]), 9).cluster_id
    proof = BrokerProof(secret, cluster_id, broker_id, secrets.token_bytes)
    channel = cast(PeerChannel, _RawChannel(connection))
    asyncio.run(proof.exchange(channel, broker_id, _TIMEOUT_S))


class _RawChannel:
    """As much of a channel as a proof needs."""

    def __init__(self, connection: RawConnection) -> None:
        self.peer = "the broker"
        self._connection = connection

    async def send(self, request: Message, *, timeout_s: float) -> Any:
        return self._connection.ask(request, request.VERSIONS.highest)
