"""LeaveGroup (key 13): members go, so that the others need not wait for their sessions to end."""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.coordinator.group.classic.errors import check_group_id
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

_SEVERAL_SINCE = 3


async def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    has_several = context.api_version >= _SEVERAL_SINCE
    if not has_several:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        check_group_id(request.group_id)
        response = await context.broker.groups.write(
            request.group_id, lambda shard, now_ms: shard.classic.leave(request, now_ms)
        )
    except KafkaError as error:
        if has_several and error.code is ErrorCode.UNKNOWN_MEMBER_ID:
            # A group that is not there has none of them, and each is told so for itself.
            return LeaveGroupResponse(
                members=[_unknown(identity, error.code) for identity in request.members]
            )
        return LeaveGroupResponse(error_code=error.code)
    if not has_several:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response


def _unknown(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=code,
    )


API = ApiHandler(CARDS[ApiKey.LEAVE_GROUP], handle)
