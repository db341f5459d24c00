"""What a broker shows of the groups and transactions that it coordinates."""

from pathlib import Path

import pytest

from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.metrics.report import MetricsReport
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.net.limits import ConnectionLimits
from headwater.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from headwater.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from headwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker
from tests.support.metric_figures import Figures, figure, read

COMMIT_VERSION = 9
ADD_VERSION = 3
SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


def figures_of(broker: HandlerBroker) -> Figures:
    return read(MetricsReport(broker.context, ConnectionLimits(), LoadMeter(None)).pieces())


async def commit(broker: HandlerBroker, group_id: str, offsets: dict[int, int]) -> None:
    """Commit offsets of `orders` for a group without members."""
    await broker.context.coordinator_topics.ensure(CoordinatorKind.GROUP)
    topic = OffsetCommitRequestTopic(
        name="orders",
        partitions=[
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            for number, offset in offsets.items()
        ],
    )
    response = await broker.ask(
        OffsetCommitRequest(group_id=group_id, topics=[topic]),
        OffsetCommitResponse,
        version=COMMIT_VERSION,
    )
    assert {each.error_code for each in response.topics[0].partitions} == {0}


def test_groups_and_their_lag(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        broker.append("orders", 1, 2, 3)
        broker.append("orders", 1, partition=1)
        before = figures_of(broker)
        assert figure(before, "headwater_group_offsets") == 0
        await commit(broker, "billing", {0: 1, 1: 5})
        await commit(broker, "shipping", {0: 3})
        figures = figures_of(broker)
        names = {"consumergroup": "billing", "topic": "orders", "partition": "0"}
        assert figure(figures, "headwater_consumergroup_lag", **names) == 2
        assert figure(figures, "headwater_consumergroup_current_offset", **names) == 1
        # An offset beyond the end is no lag of less than nothing.
        names["partition"] = "1"
        assert figure(figures, "headwater_consumergroup_lag", **names) == 0
        assert figure(figures, "headwater_consumergroup_current_offset", **names) == 5
        assert figure(figures, "headwater_consumergroup_lag_sum", consumergroup="billing") == 2
        assert figure(figures, "headwater_consumergroup_lag_sum", consumergroup="shipping") == 0
        assert figure(figures, "headwater_consumergroup_members", consumergroup="billing") == 0
        assert figure(figures, "headwater_groups", kind="classic", state="Empty") == 2
        assert figure(figures, "headwater_group_members") == 0
        assert figure(figures, "headwater_group_offsets") == 3

    run_with_broker(tmp_path, scenario, SETTINGS)


@pytest.mark.parametrize(
    ("limit", "by_partition", "by_group"), [(3, True, True), (2, False, True), (1, False, False)]
)
def test_many_groups_are_shown_as_sums(
    tmp_path: Path, limit: int, by_partition: bool, by_group: bool
) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders", partitions=2)
        broker.append("orders", 1, 2, 3)
        await commit(broker, "billing", {0: 1, 1: 0})
        await commit(broker, "shipping", {0: 2})
        figures = figures_of(broker)
        names = {name for name, _ in figures}
        assert ("headwater_consumergroup_lag" in names) == by_partition
        assert ("headwater_consumergroup_members" in names) == by_group
        total = "headwater_consumergroup_lag_sum"
        if by_group:
            assert figure(figures, total, consumergroup="billing") == 2
        else:
            assert figure(figures, total) == 3

    run_with_broker(tmp_path, scenario, {**SETTINGS, "metrics.partitions.max": str(limit)})


def test_transactions_and_their_age(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        await broker.create_topic("orders")
        figures = figures_of(broker)
        assert figure(figures, "headwater_transaction_open_seconds_max") == 0
        await broker.context.coordinator_topics.ensure(CoordinatorKind.TRANSACTION)
        for transactional_id in ("idle", "open"):
            made = await broker.ask(
                InitProducerIdRequest(
                    transactional_id=transactional_id, transaction_timeout_ms=60_000
                ),
                InitProducerIdResponse,
            )
            assert made.error_code == 0
        added = await broker.ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="open",
                v3_and_below_producer_id=made.producer_id,
                v3_and_below_producer_epoch=made.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])],
            ),
            AddPartitionsToTxnResponse,
            version=ADD_VERSION,
        )
        assert (
            added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
        )
        figures = figures_of(broker)
        assert figure(figures, "headwater_transactions", state="Empty") == 1
        assert figure(figures, "headwater_transactions", state="Ongoing") == 1
        assert 0 <= figure(figures, "headwater_transaction_open_seconds_max") < 60

    run_with_broker(tmp_path, scenario, SETTINGS)
