"""PublishAudit: a stretch is taken once, by the leader of its source's partition of `__audit`."""

from pathlib import Path

from headwater.audit.rows import encode_row
from headwater.base.errors import ErrorCode
from headwater.broker.topics.audit_topic import ensure_audit_topic
from headwater.wire.cluster_messages.publish_audit import (
    AuditRecordData,
    PublishAuditRequest,
    PublishAuditResponse,
    PublishAuditSource,
)
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

SOURCE = "orders/0/0"


def stretch(from_offset: int, to_offset: int, told_offset: int | None = None) -> PublishAuditSource:
    record = encode_row(
        {
            "version": 1,
            "tier": "broker",
            "topic": "orders",
            "partition": 0,
            "source": SOURCE,
            "from_offset": from_offset,
            "to_offset": to_offset if told_offset is None else told_offset,
            "time_bucket_start": 0,
            "count": to_offset - from_offset,
        }
    )
    return PublishAuditSource(
        source=SOURCE,
        from_offset=from_offset,
        to_offset=to_offset,
        records=[AuditRecordData(key=record.key, value=record.value)],
    )


def test_a_stretch_is_taken_where_the_last_one_ended(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        broker.become_broker()

        async def publish(
            *sources: PublishAuditSource, partition: int | None = None
        ) -> PublishAuditResponse:
            home = broker.context.audit.partition_of(SOURCE) if partition is None else partition
            request = PublishAuditRequest(partition_index=home, sources=list(sources))
            return await broker.ask(request, PublishAuditResponse)

        async def published(*sources: PublishAuditSource) -> list[int]:
            answer = await publish(*sources)
            assert answer.error_code == 0, answer.error_message
            return [each.published_offset for each in answer.sources]

        early = await publish(PublishAuditSource(source=SOURCE), partition=0)
        assert early.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await ensure_audit_topic(broker.context)
        await broker.context.audit.loaded()
        question = PublishAuditSource(source=SOURCE)
        assert await published(question) == [-1]
        assert await published(stretch(0, 10)) == [10]
        assert await published(stretch(0, 12), question) == [10, 10]
        assert await published(stretch(10, 12), stretch(12, 15)) == [12, 15]
        assert await published(stretch(20, 22)) == [15]
        assert (await publish()).sources == []
        lie = await publish(stretch(15, 16, told_offset=99))
        assert lie.error_code == ErrorCode.INVALID_REQUEST
        home = broker.context.audit.partition_of(SOURCE)
        elsewhere = await publish(question, partition=home + 1)
        assert elsewhere.error_code == ErrorCode.INVALID_REQUEST
        assert await published(question) == [15]

    run_with_broker(tmp_path, scenario)
