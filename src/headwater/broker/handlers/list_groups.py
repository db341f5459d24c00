"""ListGroups (key 16): all groups that this broker coordinates.

Filters do not mind upper and lower case. While some groups are being loaded there is no answer, for
it would lack them.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


async def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    coordinator = context.broker.groups
    if coordinator.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state_name,
                group_type=group.kind,
            )
            for shard in coordinator.shards()
            for group in shard.groups
            if (not states or group.state_name.lower() in states)
            and (not types or group.kind in types)
        ]
    )


API = ApiHandler(CARDS[ApiKey.LIST_GROUPS], handle)
