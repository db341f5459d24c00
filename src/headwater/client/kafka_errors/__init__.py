"""An exception class for every error code of the protocol, by Kafka's name for it.

NOT_LEADER_OR_FOLLOWER is `NotLeaderOrFollowerError`. Each class has its `code`, whether it is
`retriable`, and where something can be done about it, an `advice`. `headwater.errors` shows them to
users; `error_for` makes the one for a code.

Most programs meet few of these errors, and commands should start quickly: so the modules are loaded
one after the other, until a class is found that somebody asks for.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from headwater.base import errors as base_errors
from headwater.base.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headwater.base.errors import CorruptMessageError as CorruptMessageError
    from headwater.base.errors import InvalidConfigError as InvalidConfigError
    from headwater.base.errors import InvalidRecordError as InvalidRecordError
    from headwater.base.errors import InvalidTopicError as InvalidTopicError
    from headwater.base.errors import NetworkError as NetworkError
    from headwater.base.errors import RequestTimedOutError as RequestTimedOutError
    from headwater.base.errors import RetriableError as RetriableError
    from headwater.base.errors import (
        UnsupportedCompressionTypeError as UnsupportedCompressionTypeError,
    )
    from headwater.base.errors import UnsupportedVersionError as UnsupportedVersionError
    from headwater.client.kafka_errors.access_errors import *  # noqa: F403
    from headwater.client.kafka_errors.cluster_errors import *  # noqa: F403
    from headwater.client.kafka_errors.group_errors import *  # noqa: F403
    from headwater.client.kafka_errors.other_errors import *  # noqa: F403
    from headwater.client.kafka_errors.record_errors import *  # noqa: F403
    from headwater.client.kafka_errors.topic_errors import *  # noqa: F403
    from headwater.client.kafka_errors.transaction_errors import *  # noqa: F403

#: The client itself needs the first three from the start.
_MODULES: Final = (
    "cluster_errors",
    "topic_errors",
    "group_errors",
    "record_errors",
    "transaction_errors",
    "access_errors",
    "other_errors",
)


@cache
def class_by_code() -> dict[ErrorCode, type[KafkaError]]:
    """The class of each code; there is none for NONE, which is no error."""
    found: dict[ErrorCode, type[KafkaError]] = {}
    for module in (base_errors, *(import_module(f"{__name__}.{name}") for name in _MODULES)):
        for value in vars(module).values():
            is_error = isinstance(value, type) and issubclass(value, KafkaError)
            # A class without a code of its own stands for several.
            if is_error and value is not KafkaError and "code" in vars(value):
                found[value.code] = value
    return found


def error_for(code: ErrorCode, detail: str = "") -> KafkaError:
    """The exception for a code, with its own class."""
    return class_by_code().get(code, KafkaError)(detail)


# Not for type checkers, which would take any name for one that exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name.endswith("Error"):
            for module in (base_errors, *_MODULES):
                if isinstance(module, str):
                    module = import_module(f"{__name__}.{module}")
                if hasattr(module, name):
                    value = globals()[name] = getattr(module, name)
                    return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
