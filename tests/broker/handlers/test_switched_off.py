"""What is not there answers as in a Kafka where it is switched off, in every version."""

from pathlib import Path
from typing import Any

from headwater.base.errors import ErrorCode
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.wire.api_keys import ApiKey, response_class
from headwater.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from headwater.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
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
    DescribeUserScramCredentialsResponse,
    UserName,
)
from headwater.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from headwater.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from headwater.wire.schema import Message
from tests.support.brokers.handler_broker import HandlerBroker, run_with_broker

DISABLED = ErrorCode.SECURITY_DISABLED
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def ask_all(broker: HandlerBroker, request: Message) -> list[Any]:
    """The answers to one request in all versions."""
    key = ApiKey(request.API_KEY)
    lowest, highest = CARDS[key].versions
    return [
        await broker.ask(request, response_class(key), version=version)
        for version in range(lowest, highest + 1)
    ]


def test_access_control_lists(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for answer in await ask_all(broker, DescribeAclsRequest()):
            assert (answer.error_code, answer.resources) == (DISABLED, [])
        creations = [AclCreation(resource_type=2, resource_name=name) for name in "ab"]
        for answer in await ask_all(broker, CreateAclsRequest(creations=creations)):
            assert [each.error_code for each in answer.results] == [DISABLED] * 2
        filters = [DeleteAclsFilter(resource_type_filter=1)] * 3
        for answer in await ask_all(broker, DeleteAclsRequest(filters=filters)):
            assert [each.error_code for each in answer.filter_results] == [DISABLED] * 3

    run_with_broker(tmp_path, scenario)


def test_delegation_tokens(tmp_path: Path) -> None:
    async def scenario(broker: HandlerBroker) -> None:
        for request in (
            CreateDelegationTokenRequest(),
            RenewDelegationTokenRequest(hmac=b"x"),
            ExpireDelegationTokenRequest(hmac=b"x"),
            DescribeDelegationTokenRequest(owners=None),
        ):
            for answer in await ask_all(broker, request):
                assert answer.error_code == NOT_ALLOWED

    run_with_broker(tmp_path, scenario)


def test_quotas(tmp_path: Path) -> None:
    async def described(broker: HandlerBroker, *entity_types: str) -> list[tuple[int, object]]:
        components = [ComponentData(entity_type=each) for each in entity_types]
        answers = await ask_all(broker, DescribeClientQuotasRequest(components=components))
        return [(answer.error_code, answer.entries) for answer in answers]

    async def scenario(broker: HandlerBroker) -> None:
        assert await described(broker) == [(0, [])] * 2
        assert await described(broker, "user", "client-id") == [(0, [])] * 2
        assert await described(broker, "moon") == [(ErrorCode.UNSUPPORTED_VERSION, None)] * 2
        # The answer has room for no more text than the question had.
        long = "x" * 32_760
        assert await described(broker, long) == [(ErrorCode.UNSUPPORTED_VERSION, None)] * 2
        entity = [EntityData(entity_type="user", entity_name="bob")]
        remove = OpData(key="producer_byte_rate", remove=True)
        request = AlterClientQuotasRequest(
            entries=[
                RequestEntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=5.0)]),
                # There is nothing to remove, so it is done.
                RequestEntryData(entity=entity, ops=[remove]),
            ]
        )
        for answer in await ask_all(broker, request):
            codes = [entry.error_code for entry in answer.entries]
            assert codes == [ErrorCode.UNSUPPORTED_VERSION, 0]
            assert [entry.entity[0].entity_name for entry in answer.entries] == ["bob"] * 2
            assert "no quotas" in str(answer.entries[0].error_message)

    run_with_broker(tmp_path, scenario)


def test_credentials(tmp_path: Path) -> None:
    missing, twice = ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.DUPLICATE_RESOURCE

    async def scenario(broker: HandlerBroker) -> None:
        named = [UserName(name=name) for name in ("ann", "bob", "ann")]
        expected = {"ann": twice, "bob": missing}
        for users, codes in ((None, {}), ([], {}), (named, expected)):
            answer = await broker.ask(
                DescribeUserScramCredentialsRequest(users=users),
                DescribeUserScramCredentialsResponse,
            )
            assert answer.error_code == 0
            assert {each.user: each.error_code for each in answer.results} == codes
        request = AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name="ann", mechanism=1)],
            upsertions=[ScramCredentialUpsertion(name="bob", mechanism=1, iterations=4096)],
        )
        changed = await broker.ask(request, AlterUserScramCredentialsResponse)
        assert {each.user: each.error_code for each in changed.results} == {
            "ann": missing,
            "bob": ErrorCode.UNSUPPORTED_VERSION,
        }
        assert all(each.error_message for each in changed.results)

    run_with_broker(tmp_path, scenario)
