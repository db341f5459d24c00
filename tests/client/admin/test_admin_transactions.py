"""Admin operations on transactions, against brokers that answer as they are told."""

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.admin import AdminOperations, OpenTransaction, TransactionListing
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from headwater.wire.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
)
from headwater.wire.messages.describe_transactions import (
    TransactionState as DescribedTransaction,
)
from headwater.wire.messages.list_transactions import (
    ListTransactionsResponse,
    TransactionState,
)
from headwater.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from tests.support.async_tests import run_async
from tests.support.fakes.peers.brokers import Call, FakeBrokers
from tests.support.fakes.peers.coordinators import connection_to, place_coordinators

ORDERS = [TopicPartition("orders", number) for number in range(5)]
NOW_MS = 1_000_000_000


def listing(cluster: FakeBrokers, ids: dict[str, int]) -> None:
    """Broker 0 coordinates transactional ids with these producer ids."""

    def list_transactions(call: Call) -> ListTransactionsResponse:
        if "Nonsense" in call.request.state_filters:
            return ListTransactionsResponse(unknown_state_filters=["Nonsense"])
        wanted = call.request.producer_id_filters
        return ListTransactionsResponse(
            transaction_states=[
                TransactionState(
                    transactional_id=name, producer_id=number, transaction_state="Empty"
                )
                for name, number in ids.items()
                if call.broker_id == 0 and (not wanted or number in wanted)
            ]
        )

    cluster.script(ApiKey.LIST_TRANSACTIONS, list_transactions)


@run_async
async def test_the_transactions_of_all_coordinators_are_listed() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        listing(cluster, {"b": 2, "a": 1})
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            listed = await admin.list_transactions(
                states=["Empty"], duration_ms_min=9, transactional_id_pattern="a.*"
            )
            with pytest.raises(KafkaError, match="no state of transactions called 'Nonsense'"):
                await admin.list_transactions(states=["Nonsense"])
        assert listed == [
            TransactionListing("a", 0, 1, "Empty"),
            TransactionListing("b", 0, 2, "Empty"),
        ]
        request = cluster.requests(ApiKey.LIST_TRANSACTIONS)[0]
        assert (request.duration_filter, request.transactional_id_pattern) == (9, "a.*")


@run_async
async def test_filters_that_a_broker_does_not_know_are_not_left_out_silently() -> None:
    async with FakeBrokers() as cluster:
        cluster.limit_version(ApiKey.LIST_TRANSACTIONS, 1)
        listing(cluster, {"a": 1})
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            assert len(await admin.list_transactions(duration_ms_min=9)) == 1
            with pytest.raises(KafkaError, match="too old for these filters"):
                await admin.list_transactions(transactional_id_pattern="a")


def descriptions(cluster: FakeBrokers, partitions: dict[str, list[int] | int]) -> None:
    """Transactions with partitions of `orders`, or an error."""

    def describe(call: Call) -> DescribeTransactionsResponse:
        states = []
        for name in call.request.transactional_ids:
            held = partitions[name]
            if isinstance(held, int):
                states.append(DescribedTransaction(transactional_id=name, error_code=held))
                continue
            states.append(
                DescribedTransaction(
                    transactional_id=name,
                    transaction_state="Ongoing" if held else "Empty",
                    transaction_timeout_ms=60_000,
                    transaction_start_time_ms=NOW_MS if held else -1,
                    producer_id=7,
                    producer_epoch=3,
                    topics=[TopicData(topic="orders", partitions=held)] if held else [],
                )
            )
        return DescribeTransactionsResponse(transaction_states=states)

    cluster.script(ApiKey.DESCRIBE_TRANSACTIONS, describe)
    place_coordinators(cluster, dict.fromkeys(partitions, 0))


@run_async
async def test_transactions_are_described() -> None:
    async with FakeBrokers() as cluster:
        descriptions(cluster, {"open": [1, 0], "idle": [], "absent": 105, "secret": 53})
        async with connection_to(cluster) as connection:
            described = await AdminOperations(connection).describe_transactions(
                ["open", "idle", "absent", "secret"]
            )
        open_, idle = described["open"], described["idle"]
        assert not isinstance(open_, KafkaError)
        assert open_.partitions == (ORDERS[0], ORDERS[1])
        assert (open_.state, open_.start_ms, open_.timeout_ms) == ("Ongoing", NOW_MS, 60_000)
        assert not isinstance(idle, KafkaError)
        assert (idle.start_ms, idle.partitions) == (None, ())
        assert str(described["absent"]) == "There is no transactional id 'absent'."
        assert str(described["secret"]).startswith("Transactional id 'secret': Access")
        assert cluster.requests(ApiKey.FIND_COORDINATOR)[0].key_type == 1


@run_async
async def test_what_a_coordinator_does_not_own_hangs() -> None:
    async with FakeBrokers() as cluster:
        cluster.topics["orders"] = [0] * 5
        listing(cluster, {"owner": 2, "elsewhere": 3, "forgotten": 4})
        descriptions(cluster, {"owner": [2], "elsewhere": [0], "forgotten": 105})
        # Partition 0 is young, 1 has no transaction, 2 is owned by its coordinator, and 3 and 4
        # are not.
        producers = {
            0: ProducerState(
                producer_id=9, last_timestamp=NOW_MS - 1000, current_txn_start_offset=10
            ),
            1: ProducerState(producer_id=1, last_timestamp=0),
            2: ProducerState(producer_id=2, last_timestamp=0, current_txn_start_offset=12),
            3: ProducerState(producer_id=3, last_timestamp=0, current_txn_start_offset=13),
            4: ProducerState(producer_id=4, last_timestamp=0, current_txn_start_offset=14),
        }

        def describe_producers(call: Call) -> DescribeProducersResponse:
            [topic] = call.request.topics
            return DescribeProducersResponse(
                topics=[
                    TopicResponse(
                        name=topic.name,
                        partitions=[
                            PartitionResponse(
                                partition_index=number, active_producers=[producers[number]]
                            )
                            for number in topic.partition_indexes
                        ],
                    )
                ]
            )

        cluster.script(ApiKey.DESCRIBE_PRODUCERS, describe_producers)

        def places_of(found: list[OpenTransaction]) -> list[tuple[TopicPartition, int]]:
            return [(it.topic_partition, it.producer.transaction_start_offset) for it in found]

        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            hanging = await admin.find_hanging(ORDERS, now_ms=NOW_MS, timeout_ms_max=60_000)
            assert places_of(hanging) == [(ORDERS[3], 13), (ORDERS[4], 14)]
            assert cluster.requests(ApiKey.LIST_TRANSACTIONS)[0].producer_id_filters == [2, 3, 4]
            none = await admin.find_hanging(
                ORDERS, now_ms=NOW_MS, timeout_ms_max=NOW_MS, broker_id=0
            )
            assert none == []
            assert len(cluster.requests(ApiKey.LIST_TRANSACTIONS)) == 1


@run_async
async def test_a_transaction_is_aborted_by_its_leader() -> None:
    async with FakeBrokers(broker_count=2) as cluster:
        cluster.topics["orders"] = [0, 1]
        codes = [int(ErrorCode.NOT_LEADER_OR_FOLLOWER), 0, int(ErrorCode.INVALID_PRODUCER_EPOCH)]

        def write(call: Call) -> WriteTxnMarkersResponse:
            assert call.broker_id == 1
            result = WritableTxnMarkerPartitionResult(partition_index=1, error_code=codes.pop(0))
            topic = WritableTxnMarkerTopicResult(name="orders", partitions=[result])
            return WriteTxnMarkersResponse(
                markers=[WritableTxnMarkerResult(producer_id=7, topics=[topic])]
            )

        cluster.script(ApiKey.WRITE_TXN_MARKERS, write)
        async with connection_to(cluster) as connection:
            admin = AdminOperations(connection)
            await admin.abort_transaction(
                ORDERS[1], producer_id=7, producer_epoch=3, coordinator_epoch=-1
            )
            with pytest.raises(KafkaError, match=r"orders-1: The producer's epoch is older"):
                await admin.abort_transaction(
                    ORDERS[1], producer_id=7, producer_epoch=2, coordinator_epoch=5
                )
        markers = [it.markers[0] for it in cluster.requests(ApiKey.WRITE_TXN_MARKERS)]
        assert [marker.coordinator_epoch for marker in markers] == [0, 0, 5]
        assert not markers[0].transaction_result
        assert (markers[0].producer_id, markers[0].producer_epoch) == (7, 3)
