"""JoinGroup (key 11): become a member of a group, or take part in its next generation.

The answer comes when all members have joined, which may take as long as the rebalance timeout.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.classic.errors import check_group_id
from headwater.coordinator.group.classic.member import JoiningClient
from headwater.coordinator.group.shard import GroupShard
from headwater.coordinator.outcome import Outcome, Reply
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

_NULLABLE_NAME_SINCE = 7


async def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    # Java writes an address without a host name this way, and tools show it so.
    client_host = f"/{context.connection.peer[0]}"
    client = JoiningClient(context.client_id or "", client_host, context.api_version)

    def join(shard: GroupShard, now_ms: int, reply: Reply[JoinGroupResponse]) -> Outcome:
        return shard.classic.join(request, client, now_ms, reply)

    try:
        check_group_id(request.group_id)
        response = await context.broker.groups.ask(request.group_id, join)
    except KafkaError as error:
        member_id = request.member_id
        if error.code is ErrorCode.GROUP_MAX_SIZE_REACHED:
            member_id = ""  # The id that it was handed is forgotten.
        response = JoinGroupResponse(error_code=error.code, member_id=member_id)
    response.protocol_name = response.protocol_name or (
        None if context.api_version >= _NULLABLE_NAME_SINCE else ""
    )
    return response


API = ApiHandler(CARDS[ApiKey.JOIN_GROUP], handle)
