"""Which operations a client is told that it may do, as the bit field of Kafka's answers.

Each operation of an access control list has a number, and the bit of that number is set if the
client may do it. Without an authorizer everybody may do all that the kind of resource knows.
"""

from typing import Final

from headwater.broker.access.operations import Operation


def bit_field(*operations: Operation) -> int:
    return sum(1 << operation for operation in set(operations))


#: What an answer says when the client did not ask.
NOT_ASKED: Final = -(2**31)

TOPIC_OPERATIONS: Final = bit_field(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS: Final = bit_field(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
GROUP_OPERATIONS: Final = bit_field(
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
