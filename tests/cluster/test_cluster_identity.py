"""The ids of clusters and brokers."""

import asyncio
import uuid

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import topic_id_from_text
from headwater.base.randomness import SeededRandom
from headwater.cluster.identity import establish_cluster_id, generate_broker_id
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import open_in_memory


@run_async
async def test_a_cluster_id_is_drawn_once() -> None:
    store = await open_in_memory()
    first = await establish_cluster_id(store.connect(), None, SeededRandom(1).uuid)
    assert topic_id_from_text(first).version == 4
    assert await establish_cluster_id(store.connect(), None, SeededRandom(2).uuid) == first
    assert await establish_cluster_id(store.connect(), first, SeededRandom(3).uuid) == first
    with pytest.raises(KafkaError) as caught:
        await establish_cluster_id(store.connect(), "another", SeededRandom(4).uuid)
    assert caught.value.code == ErrorCode.INCONSISTENT_CLUSTER_ID


@run_async
async def test_brokers_that_start_together_agree_on_one_id() -> None:
    store = await open_in_memory()
    ids = await asyncio.gather(
        *(establish_cluster_id(store.connect(), None, uuid.uuid4) for _ in range(5))
    )
    assert len(set(ids)) == 1


@run_async
async def test_generated_broker_ids_are_above_the_reserved_ones_and_all_different() -> None:
    store = await open_in_memory()
    ids = await asyncio.gather(*(generate_broker_id(store.connect(), 1_000) for _ in range(3)))
    assert sorted(ids) == [1_001, 1_002, 1_003]
    assert await generate_broker_id(store.connect(), 5_000) == 5_004
