"""DeleteGroups (key 42): delete groups that have no members, with all their offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from headwater.base.errors import KafkaError
from headwater.base.printable import shortened
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.change_log import deed
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
    # All at once, so that they wait for replicas and disks together.
    group_ids = list(dict.fromkeys(request.groups_names))
    return DeleteGroupsResponse(
        results=await asyncio.gather(*(_delete(group_id, context) for group_id in group_ids))
    )


async def _delete(group_id: str, context: RequestContext) -> DeletableGroupResult:
    result = DeletableGroupResult(group_id=group_id)
    try:
        while not await context.broker.groups.write(
            group_id, lambda shard, now_ms: shard.removal.delete(group_id)
        ):
            pass  # A large group goes piece by piece.
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = str(error)
    return result


def _deeds(_: DeleteGroupsRequest, response: DeleteGroupsResponse) -> Iterator[str]:
    deleted = [shortened(each.group_id) for each in response.results if not each.error_code]
    yield deed("deleted", "group", deleted)


API = ApiHandler(CARDS[ApiKey.DELETE_GROUPS], handle, deeds=_deeds)
