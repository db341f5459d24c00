"""Cards of the APIs for access control lists, quotas, credentials and tokens.

There is none of this so far. The APIs say so as a Kafka does where it is switched off, so that
tools which ask for it get an answer.
"""

from typing import Final

from headwater.broker.access.operations import Access, Operation, Resource
from headwater.broker.handlers.cards.api_card import ApiCard
from headwater.wire.api_keys import ApiKey

_SHOW: Final = (Access(Operation.DESCRIBE, Resource.CLUSTER),)
_CHANGE: Final = (Access(Operation.ALTER, Resource.CLUSTER),)

SECURITY_CARDS: Final = (
    ApiCard(ApiKey.DESCRIBE_ACLS, access=_SHOW, notes={3: "resources may be users"}),
    ApiCard(ApiKey.CREATE_ACLS, access=_CHANGE, notes={3: "resources may be users"}),
    ApiCard(ApiKey.DELETE_ACLS, access=_CHANGE, notes={3: "resources may be users"}),
    ApiCard(
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        access=(Access(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER),),
    ),
    ApiCard(
        ApiKey.ALTER_CLIENT_QUOTAS,
        access=(Access(Operation.ALTER_CONFIGS, Resource.CLUSTER),),
    ),
    ApiCard(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, access=_SHOW),
    ApiCard(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, access=_CHANGE),
    ApiCard(ApiKey.CREATE_DELEGATION_TOKEN, notes={3: "a token for somebody else"}),
    ApiCard(ApiKey.RENEW_DELEGATION_TOKEN),
    ApiCard(ApiKey.EXPIRE_DELEGATION_TOKEN),
    ApiCard(ApiKey.DESCRIBE_DELEGATION_TOKEN, notes={3: "who asked for a token"}),
)
