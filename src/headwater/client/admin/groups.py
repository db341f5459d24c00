"""Admin operations on groups: list, describe and delete them, and remove their members."""

from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.coordinator_requests import (
    AskCoordinator,
    Value,
    ask_coordinators,
)
from headwater.client.admin.group_description import (
    GroupDescription,
    classic_description,
    consumer_description,
)
from headwater.client.admin.outcomes import (
    Operations,
    Outcomes,
    raised_or_returned,
    require_all,
    settle,
)
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.errors import group_refusal, refusal
from headwater.client.given_items import given_names
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from headwater.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from headwater.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headwater.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from headwater.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

#: The state in which older brokers describe a group that they do not have.
DEAD: Final = "Dead"
#: Not a group of the consumer protocol, so it may be a classic one.
_OF_OTHER_KIND: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


class GroupListing(NamedTuple):
    """A group in a list; `kind` and `state` are empty where the broker is too old to say."""

    group_id: str
    kind: str
    state: str
    protocol_type: str


class GroupOperations(Operations):
    """See `AdminOperations`."""

    async def list_groups(
        self, *, states: Collection[str] = (), kinds: Collection[str] = ()
    ) -> list[GroupListing]:
        """The groups of all brokers by name, all unless states or kinds say which."""
        states, kinds = given_names(states), given_names(kinds)
        request = ListGroupsRequest(states_filter=states, types_filter=kinds)

        async def attempt(pending: list[int]) -> Outcomes[int, list[GroupListing]]:
            outcomes: Outcomes[int, list[GroupListing]] = {}
            for broker_id in pending:
                response = await self.connection.ask(request, ListGroupsResponse, broker_id)
                outcomes[broker_id] = (
                    refusal(response.error_code, None, f"Broker {broker_id}")
                    if response.error_code
                    else [
                        GroupListing(
                            group.group_id,
                            group.group_type,
                            group.group_state,
                            group.protocol_type,
                        )
                        for group in response.groups
                    ]
                )
            return outcomes

        brokers = list(self.connection.metadata.brokers)
        listed = require_all(await settle(self.connection, brokers, attempt, "Listing groups"))
        # An older broker does not know the filters, and then says what they ask for.
        wanted_states = {state.lower() for state in states}
        wanted_kinds = {kind.lower() for kind in kinds}
        return sorted(
            group
            for groups in listed.values()
            for group in groups
            if (not wanted_states or not group.state or group.state.lower() in wanted_states)
            and (not wanted_kinds or not group.kind or group.kind.lower() in wanted_kinds)
        )

    async def describe_groups(self, group_ids: Collection[str]) -> Outcomes[str, GroupDescription]:
        """Groups of either protocol, with their members; raises `UnknownGroupError` for others."""

        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, GroupDescription]:
            outcomes: Outcomes[str, GroupDescription] = {}
            channel = await self.connection.channel(broker_id)
            if ApiKey.CONSUMER_GROUP_DESCRIBE in channel.versions:
                outcomes = await self._describe_consumer_groups(broker_id, owned)
            others = [
                group_id
                for group_id in owned
                if group_id not in outcomes or _is_of_other_kind(outcomes[group_id])
            ]
            if others:
                outcomes |= await self._describe_classic_groups(broker_id, others)
            return outcomes

        return await self._ask_coordinators(group_ids, ask, "Describing groups")

    async def delete_groups(
        self, group_ids: Collection[str], *, raise_errors: bool = True
    ) -> Outcomes[str, None]:
        """Delete groups that have no members, with their offsets."""

        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, None]:
            response = await self.connection.ask(
                DeleteGroupsRequest(groups_names=owned), DeleteGroupsResponse, broker_id
            )
            return {
                result.group_id: group_refusal(
                    result.error_code, result.error_message, result.group_id
                )
                if result.error_code
                else None
                for result in response.results
            }

        outcomes = await self._ask_coordinators(group_ids, ask, "Deleting groups")
        return raised_or_returned(outcomes, raise_errors)

    async def remove_members(
        self,
        group_id: str,
        *,
        member_ids: Collection[str] = (),
        group_instance_ids: Collection[str] = (),
        reason: str = "removed by an administrator",
        raise_errors: bool = True,
    ) -> Outcomes[str, None]:
        """Make members leave a group; each outcome is under the id that was given.

        A static member, which has an instance id, would be awaited until its session is over.
        """
        identities = [
            *(
                MemberIdentity(member_id=member_id, reason=reason)
                for member_id in given_names(member_ids)
            ),
            *(
                MemberIdentity(group_instance_id=instance_id, reason=reason)
                for instance_id in given_names(group_instance_ids)
            ),
        ]

        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, Outcomes[str, None]]:
            request = LeaveGroupRequest(group_id=group_id, members=identities)
            response = await self.connection.ask(request, LeaveGroupResponse, broker_id)
            if response.error_code:
                return {group_id: group_refusal(response.error_code, None, group_id)}
            outcomes: Outcomes[str, None] = {}
            for identity, member in zip(identities, response.members, strict=False):
                key = identity.member_id or identity.group_instance_id or ""
                outcomes[key] = (
                    refusal(member.error_code, None, f"Member {key!r} of group {group_id!r}")
                    if member.error_code
                    else None
                )
            return {group_id: outcomes}

        removed = await self._ask_coordinators([group_id], ask, "Removing members")
        return raised_or_returned(require_all(removed)[group_id], raise_errors)

    async def _describe_consumer_groups(
        self, broker_id: int, group_ids: list[str]
    ) -> Outcomes[str, GroupDescription]:
        coordinator = self.connection.metadata.brokers[broker_id]
        response = await self.connection.ask(
            ConsumerGroupDescribeRequest(group_ids=group_ids),
            ConsumerGroupDescribeResponse,
            broker_id,
        )
        return {
            group.group_id: group_refusal(group.error_code, group.error_message, group.group_id)
            if group.error_code
            else consumer_description(group, coordinator)
            for group in response.groups
        }

    async def _describe_classic_groups(
        self, broker_id: int, group_ids: list[str]
    ) -> Outcomes[str, GroupDescription]:
        coordinator = self.connection.metadata.brokers[broker_id]
        response = await self.connection.ask(
            DescribeGroupsRequest(groups=group_ids), DescribeGroupsResponse, broker_id
        )
        outcomes: Outcomes[str, GroupDescription] = {}
        for group in response.groups:
            if group.error_code or group.group_state == DEAD:
                code = group.error_code or ErrorCode.GROUP_ID_NOT_FOUND
                outcomes[group.group_id] = group_refusal(code, group.error_message, group.group_id)
            else:
                outcomes[group.group_id] = classic_description(group, coordinator)
        return outcomes

    async def _ask_coordinators(
        self, group_ids: Collection[str], ask: AskCoordinator[Value], what: str
    ) -> Outcomes[str, Value]:
        return await ask_coordinators(self.connection, CoordinatorKind.GROUP, group_ids, ask, what)


def _is_of_other_kind(outcome: GroupDescription | KafkaError) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code in _OF_OTHER_KIND
