"""What somebody may want to do, and to what: the words of access control, with Kafka's numbers.

An API says on its card which accesses it needs (`handlers.cards`), and answers tell clients which
operations they may do (`authorized_operations`). There is no authorizer here so far: everybody may
do everything but what is for brokers alone.
"""

from enum import IntEnum
from typing import NamedTuple


class Operation(IntEnum):
    """What an access control list can allow."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Resource(IntEnum):
    """The kinds of things that an access control list protects; there is one cluster."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Access(NamedTuple):
    """An operation on each thing of a kind that a request names."""

    operation: Operation
    resource: Resource
    #: Which requests need it, where not all of an API do, or in place of which other access.
    when: str = ""
