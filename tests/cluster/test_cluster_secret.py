"""What brokers of a cluster know and nobody else."""

import asyncio
import secrets

import pytest

from headwater.cluster.identity import prepare_store
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.node_locations import CLUSTER_SECRET
from headwater.cluster.secret import SECRET_BYTES, establish_cluster_secret
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import open_in_memory


@run_async
async def test_brokers_that_start_together_agree_on_one_secret_that_stays() -> None:
    store = await open_in_memory()
    await prepare_store(store.connect())
    found = await asyncio.gather(
        *(establish_cluster_secret(store.connect(), secrets.token_bytes) for _ in range(5))
    )
    assert len(set(found)) == 1
    assert len(found[0]) == SECRET_BYTES
    assert await establish_cluster_secret(store.connect(), secrets.token_bytes) == found[0]


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"{}", b'{"secret":7}', b'{"secret":"no hex"}', b'{"secret":"00ff"}', b"\xff"],
)
@run_async
async def test_what_holds_no_secret_is_not_guessed_at(data: bytes) -> None:
    store = await open_in_memory()
    session = store.connect()
    await prepare_store(session)
    await session.create(CLUSTER_SECRET, data)
    with pytest.raises(CorruptNodeError) as caught:
        await establish_cluster_secret(session, secrets.token_bytes)
    assert CLUSTER_SECRET in str(caught.value)
