"""Questions about access, quotas, credentials and tokens, all switched off: see `questions`."""

from __future__ import annotations

from functools import partial

from headwater.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from headwater.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from headwater.wire.messages.create_acls import AclCreation, CreateAclsRequest
from headwater.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from headwater.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headwater.wire.messages.describe_acls import DescribeAclsRequest
from headwater.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from headwater.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from headwater.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headwater.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from headwater.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from headwater.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from headwater.wire.schema import Message
from tests.support.other_clients.questions.questions import Conversation

ANY, LITERAL, TOPIC, READ, ALLOW = 1, 3, 2, 3, 3
SHA_256 = 1


def switched_off(conversation: Conversation) -> None:
    def ask(label: str, message: Message) -> None:
        conversation.ask(label, partial(_always, message))

    everything = DescribeAclsRequest(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    ask("lists", everything)
    creation = AclCreation(
        resource_type=TOPIC,
        resource_name="orders",
        resource_pattern_type=LITERAL,
        principal="User:ann",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    ask("add to lists", CreateAclsRequest(creations=[creation, creation]))
    ask("add nothing to lists", CreateAclsRequest(creations=[]))
    wanted = DeleteAclsFilter(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    ask("take from lists", DeleteAclsRequest(filters=[wanted, wanted]))

    ask("quotas", DescribeClientQuotasRequest(components=[], strict=False))
    for kind in ("user", "client-id", "ip", "moon"):
        component = ComponentData(entity_type=kind, match_type=0, match="127.0.0.1")
        request = DescribeClientQuotasRequest(components=[component], strict=True)
        ask(f"quotas of a {kind}", request)
    entry = RequestEntryData(
        entity=[EntityData(entity_type="user", entity_name="ann")],
        ops=[OpData(key="producer_byte_rate", remove=True)],
    )
    ask("no quota", AlterClientQuotasRequest(entries=[entry]))

    for users in (None, [], ["ann"], ["ann", "bob", "ann"], [""]):
        named = None if users is None else [UserName(name=name) for name in users]
        ask(f"credentials of {users}", DescribeUserScramCredentialsRequest(users=named))
    deletion = ScramCredentialDeletion(name="ann", mechanism=SHA_256)
    ask("no credentials", AlterUserScramCredentialsRequest(deletions=[deletion]))

    ask("token", CreateDelegationTokenRequest(max_lifetime_ms=-1))
    ask("renew a token", RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=5))
    ask("expire a token", ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=5))
    ask("tokens", DescribeDelegationTokenRequest(owners=None))
    ask("tokens of nobody", DescribeDelegationTokenRequest(owners=[]))

    conversation.create("staying")
    staying = [ListPartitionReassignmentsTopics(name="staying", partition_indexes=[0, 7])]
    for topics in (None, [], staying):
        named_topics = "all" if topics is None else len(topics)
        ask(f"moves of {named_topics}", ListPartitionReassignmentsRequest(topics=topics))


def _always(message: Message, _version: int) -> Message:
    return message
