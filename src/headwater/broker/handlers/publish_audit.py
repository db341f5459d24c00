"""PublishAudit (private key 10010): rows of the audit, for a partition of `__audit`."""

from __future__ import annotations

from headwater.audit.rows import AuditRecord
from headwater.audit.shard import AuditShard, Published, Stretch
from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.api_keys import ApiKey
from headwater.wire.cluster_messages.publish_audit import (
    PublishAuditRequest,
    PublishAuditResponse,
    PublishedSource,
)


async def handle(request: PublishAuditRequest, context: RequestContext) -> PublishAuditResponse:
    stretches = [
        Stretch(
            each.source,
            each.from_offset,
            each.to_offset,
            [AuditRecord(bytes(row.key), bytes(row.value)) for row in each.records],
        )
        for each in request.sources
    ]
    if not stretches:
        return PublishAuditResponse()

    def publish(shard: AuditShard, now_ms: int, reply: Reply[list[Published]]) -> Outcome:
        change = shard.publish(stretches)
        return Outcome(
            records=change.records,
            on_safe=lambda: reply.send(change.response),
            on_failed=reply.fail,
            # Whoever goes on from an answer relies on it: what is told must be safe.
            follows_writes=True,
        )

    audit = context.broker.audit
    try:
        for stretch in stretches:
            if audit.partition_of(stretch.source) != request.partition_index:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"{stretch.source} does not belong to partition {request.partition_index}.",
                )
        published = await audit.ask(stretches[0].source, publish)
    except KafkaError as error:
        return PublishAuditResponse(error_code=error.code, error_message=str(error))
    return PublishAuditResponse(
        sources=[
            PublishedSource(
                source=stretch.source,
                published_offset=known.offset,
                leader_epoch=known.leader_epoch,
            )
            for stretch, known in zip(stretches, published, strict=True)
        ]
    )


API = ApiHandler(CARDS[ApiKey.PUBLISH_AUDIT], handle)
