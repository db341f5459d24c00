"""What is exported of one store and imported into another is the same cluster, with its numbers
ahead: whatever the store, wherever the import was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import KafkaError
from headwater.cluster.backup.document import MetadataDocument, decode_document, encode_document
from headwater.cluster.backup.document_check import check_document
from headwater.cluster.backup.numbers_ahead import EPOCHS, PRODUCER_IDS, with_numbers_ahead
from headwater.cluster.backup.reading import read_document, read_nodes
from headwater.cluster.backup.restoring import StoreInUseError, restore
from headwater.cluster.identity import establish_cluster_id, generate_broker_id, prepare_store
from headwater.cluster.node_documents import (
    PartitionState,
    ProducerIdBlock,
    TopicDocument,
    decode_partition_state,
    decode_producer_id_block,
    encode_cluster_id,
    encode_configs,
    encode_partition_state,
    encode_producer_id_block,
    encode_topic,
)
from headwater.cluster.node_locations import (
    BROKER_SEQUENCE,
    CLUSTER_ID,
    CLUSTER_SECRET,
    CONTROLLER_EPOCH,
    IMPORT,
    KEPT_NODES,
    PRODUCER_ID_BLOCK,
    broker_config_path,
    broker_path,
    group_config_path,
    partition_path,
    partition_state_path,
    partitions_path,
    topic_config_path,
    topic_deletion_path,
    topic_path,
    unclean_broker_path,
)
from headwater.cluster.secret import encode_cluster_secret
from headwater.cluster.store.errors import UncertainWriteError
from headwater.cluster.store.metadata_store import Create, MetadataStore, Operation, Result
from tests.support.async_tests import run_async
from tests.support.brokers.metadata_stores import WORLDS, open_in_memory

_ORIGIN = {"headwater": "0.9.0", "exported_from": "a test"}


def topic_nodes(
    name: str, number: int, replicas: Sequence[tuple[int, ...]], leader_epoch: int = 3
) -> dict[str, bytes]:
    """A topic of which the first partition moves, if it can."""
    adding = {0: replicas[0][-1:]} if len(replicas[0]) > 1 else {}
    nodes = {
        topic_path(name): encode_topic(TopicDocument(UUID(int=number), tuple(replicas), adding)),
        partitions_path(name): b"",
    }
    for partition, brokers in enumerate(replicas):
        state = PartitionState(brokers[0], leader_epoch, brokers[:1], 2)
        nodes[partition_path(name, partition)] = b""
        nodes[partition_state_path(name, partition)] = encode_partition_state(state)
    return nodes


def cluster_nodes(extra: Mapping[str, bytes]) -> dict[str, bytes]:
    return {
        CLUSTER_ID: encode_cluster_id("a-cluster"),
        CLUSTER_SECRET: encode_cluster_secret(bytes(range(32))),
        CONTROLLER_EPOCH: b"7",
        PRODUCER_ID_BLOCK: encode_producer_id_block(ProducerIdBlock(1, 4_000, 4_999)),
        unclean_broker_path(2): b"restarted",
        **extra,
    }


async def fill(store: MetadataStore, nodes: Mapping[str, bytes], ids_given: int = 0) -> None:
    await prepare_store(store)
    await store.multi([Create(path, data) for path, data in sorted(nodes.items())])
    for _ in range(ids_given):
        await generate_broker_id(store, 1_000)


_NAMES = st.from_regex(r"[a-z][a-zA-Z0-9._-]{0,20}", fullmatch=True)
_REPLICAS = st.lists(st.integers(0, 2_000), min_size=1, max_size=3, unique=True).map(tuple)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def _clusters(draw: st.DrawFn) -> tuple[dict[str, bytes], int]:
    nodes: dict[str, bytes] = {}
    names = draw(st.lists(_NAMES, max_size=4, unique_by=str.lower))
    for number, name in enumerate(names, 1):
        replicas = draw(st.lists(_REPLICAS, min_size=1, max_size=4))
        nodes |= topic_nodes(name, number, replicas, draw(st.integers(0, 2**31 - 1)))
        if draw(st.booleans()):
            configs = draw(st.dictionaries(_TEXTS, _TEXTS, max_size=3))
            nodes[topic_config_path(name)] = encode_configs(configs)
        if draw(st.booleans()):
            nodes[topic_deletion_path(name)] = b""
    nodes[broker_config_path(None)] = encode_configs({"num.io.threads": "8"})
    group = draw(_TEXTS.filter(bool))
    nodes[group_config_path(group)] = encode_configs({"consumer.session.timeout.ms": "1000"})
    return cluster_nodes(nodes), draw(st.integers(0, 5))


@given(_clusters())
def test_a_document_is_the_store_and_comes_back_from_its_file(
    cluster: tuple[dict[str, bytes], int],
) -> None:
    async def scenario() -> None:
        nodes, ids_given = cluster
        first, second = await open_in_memory(), await open_in_memory()
        await fill(first.connect(), nodes, ids_given)
        exported = await read_document(first.connect(), _ORIGIN)
        assert {path: exported.nodes[path] for path in nodes} == nodes
        assert decode_document(encode_document(exported)) == exported
        image = await check_document(exported)
        assert image.unreadable_topics == frozenset()

        ahead = with_numbers_ahead(exported)
        await restore(second.connect(), ahead, is_one_transaction=True)
        # As the file of the first would be, but for the numbers.
        assert await read_document(second.connect(), _ORIGIN) == ahead
        await check_document(ahead)
        assert await generate_broker_id(second.connect(), 1_000) == 1_001 + ids_given

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", WORLDS)
@run_async
async def test_every_store_can_be_exported_and_imported_into(kind: str, tmp_path: Path) -> None:
    topics = [topic_nodes(f"topic-{each}", each, [(1, 2), (2, 1)] * 20) for each in range(1, 7)]
    nodes = cluster_nodes({path: data for topic in topics for path, data in topic.items()})
    async with WORLDS[kind](tmp_path) as world:
        store = await world.connect()
        source = await open_in_memory()
        await fill(source.connect(), nodes, 2)
        document = await read_document(source.connect(), _ORIGIN)
        await restore(store, document, is_one_transaction=kind in ("memory", "sqlite"))
        assert await read_document(store, _ORIGIN) == document
        assert await store.exists(IMPORT) is None
        # Once more is nothing new; another one has to be meant.
        await restore(store, document)
        with pytest.raises(StoreInUseError, match="is not empty"):
            await restore(store, with_numbers_ahead(document))
        other = MetadataDocument(cluster_nodes(topic_nodes("other", 1, [(1,)])))
        whole = replace(other, nodes={**_standing(document), **other.nodes})
        await restore(store, whole, may_replace=True)
        assert set(await read_nodes(store)) == set(whole.nodes)


def _standing(document: MetadataDocument) -> dict[str, bytes]:
    return {
        path: data
        for path, data in document.nodes.items()
        if not data and not path.startswith("/brokers/topics/")
    }


class _Interrupted(Exception):
    pass


class _DyingStore:
    """A session whose owner dies in front of, or right after, one of its transactions."""

    def __init__(self, store: MetadataStore, left: int, *, is_after: bool) -> None:
        self._store = store
        self._left = left
        self._is_after = is_after

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        self._left -= 1
        if self._left == 0 and not self._is_after:
            raise _Interrupted
        results = await self._store.multi(operations)
        if self._left == 0:
            raise _Interrupted
        return results


@pytest.mark.parametrize("is_after", [False, True])
@run_async
async def test_an_import_that_was_interrupted_goes_on(
    is_after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.cluster.backup.restoring.OPERATIONS_MAX", 5)
    source = await open_in_memory()
    nodes = cluster_nodes(topic_nodes("orders", 1, [(1,), (1, 2)]))
    await fill(source.connect(), nodes, 3)
    document = await read_document(source.connect(), _ORIGIN)
    other = MetadataDocument(cluster_nodes({}))
    ended = False
    step = 0
    while not ended:
        step += 1
        store = await open_in_memory()
        dying = _DyingStore(store.connect(), step, is_after=is_after)
        try:
            await restore(dying, document)  # type: ignore[arg-type]
            ended = True
        except _Interrupted:
            if await store.connect().exists(IMPORT) is not None:
                # No broker joins, and nobody else's import takes its place unasked.
                with pytest.raises(KafkaError, match="has not ended"):
                    await establish_cluster_id(store.connect(), None, lambda: UUID(int=1))
                with pytest.raises(StoreInUseError, match="another file"):
                    await restore(store.connect(), other)
                await restore(store.connect(), document)
        if await store.connect().exists(CLUSTER_ID) is not None:
            assert await read_document(store.connect(), _ORIGIN) == document
    assert step > 5


@run_async
async def test_writes_of_unknown_fate_are_looked_after() -> None:
    class Uncertain(_DyingStore):
        async def multi(self, operations: Sequence[Operation]) -> list[Result]:
            try:
                return await super().multi(operations)
            except _Interrupted:
                raise UncertainWriteError(operations[0].path) from None

    document = MetadataDocument(
        dict(sorted({**_parents(), **cluster_nodes(topic_nodes("orders", 1, [(1,)]))}.items()))
    )
    for step in range(1, 4):
        for is_after in (False, True):
            store = await open_in_memory()
            uncertain = Uncertain(store.connect(), step, is_after=is_after)
            await restore(uncertain, document)  # type: ignore[arg-type]
            assert (await read_document(store.connect(), {})).nodes == document.nodes


def _parents() -> dict[str, bytes]:
    paths = ("/brokers", "/brokers/topics", "/brokers/unclean", "/cluster")
    return dict.fromkeys(paths, b"")


@run_async
async def test_a_store_that_brokers_live_on_is_left_alone() -> None:
    store = await open_in_memory()
    await fill(store.connect(), cluster_nodes({}))
    document = await read_document(store.connect(), _ORIGIN)
    broker = store.connect()
    await broker.create(broker_path(4), b"", ephemeral=True)
    with pytest.raises(StoreInUseError, match=r"are alive \(4\)"):
        await restore(store.connect(), document, may_replace=True)
    # What goes with a session is not in a document.
    assert await read_document(store.connect(), _ORIGIN) == document


@run_async
async def test_what_changes_while_it_is_read_is_read_again() -> None:
    class Changing(_DyingStore):
        changes_left = 3

        async def children(self, path: str) -> list[str]:
            if path == "/config" and self.changes_left:
                self.changes_left -= 1
                await self._store.set(CONTROLLER_EPOCH, b"%d" % (8 + self.changes_left))
            return await self._store.children(path)

    store = await open_in_memory()
    await fill(store.connect(), cluster_nodes({}))
    document = await read_document(Changing(store.connect(), -1, is_after=False), {})  # type: ignore[arg-type]
    assert document.is_of_one_moment
    assert document.nodes[CONTROLLER_EPOCH] == b"8"
    restless = Changing(store.connect(), -1, is_after=False)
    restless.changes_left = 100
    assert not (await read_document(restless, {}, rounds_max=3)).is_of_one_moment  # type: ignore[arg-type]


def test_numbers_that_must_not_come_twice_are_far_ahead() -> None:
    nodes = cluster_nodes(topic_nodes("orders", 1, [(1,)]))
    ahead = with_numbers_ahead(MetadataDocument(nodes)).nodes
    path = partition_state_path("orders", 0)
    assert decode_partition_state(path, ahead[path]).leader_epoch == 3 + EPOCHS
    assert int(ahead[CONTROLLER_EPOCH]) == 7 + EPOCHS
    block = decode_producer_id_block(PRODUCER_ID_BLOCK, ahead[PRODUCER_ID_BLOCK])
    assert block.last == 4_999 + PRODUCER_IDS
    changed = {each for each in nodes if nodes[each] != ahead[each]}
    assert changed == {path, CONTROLLER_EPOCH, PRODUCER_ID_BLOCK}


def test_a_cluster_keeps_nothing_elsewhere() -> None:
    named = [CLUSTER_ID, CONTROLLER_EPOCH, BROKER_SEQUENCE, topic_path("x"), topic_config_path("x")]
    assert all("/" + each.split("/")[1] in KEPT_NODES for each in named)
