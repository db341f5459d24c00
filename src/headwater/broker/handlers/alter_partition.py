"""AlterPartition (API 56), version 3: a leader has the controller change in-sync replicas.

- v3: the epoch of each broker that shall be in sync, so that none counts in a life that is over.

For brokers only. Each partition has an answer of its own: the state that holds now, or why the
leader's wish is not to be.
"""

from __future__ import annotations

from headwater.base.errors import KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey, VersionRange
from headwater.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


async def handle(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    try:
        context.check_speaks_for(request.broker_id)
        return await context.controller.alter_partitions(request)
    except KafkaError as error:
        context.record_error(error.code)
        return AlterPartitionResponse(error_code=error.code)


API = ApiHandler(ApiKey.ALTER_PARTITION, handle, VersionRange(3, 3), brokers_only=True)
