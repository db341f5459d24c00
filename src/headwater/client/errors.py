"""What can go wrong for a client, each in one sentence that a person can act on.

All of them are `KafkaError`s, so that a caller may look at the code alone. What a broker refuses
has the class of its code (see `kafka_errors`) and, where it gave one, the sentence of that broker.
The classes here are what the client finds out by itself.
"""

from collections.abc import Mapping
from typing import Any, Final

from headwater.base.errors import (
    ErrorCode,
    InvalidConfigError,
    KafkaError,
    NetworkError,
    RequestTimedOutError,
)
from headwater.client.kafka_errors import (
    BrokerNotAvailableError,
    GroupIdNotFoundError,
    UnknownTopicOrPartitionError,
    error_for,
)

#: How many failures one sentence names.
_TOLD_MAX: Final = 10


class InvalidAddressError(InvalidConfigError):
    """A list of bootstrap servers that makes no sense."""


class BrokerUnreachableError(NetworkError):
    """A broker cannot be connected to, or the connection broke before its answer came."""


class NoBrokerError(BrokerNotAvailableError):
    """None of the bootstrap servers can be used."""


class UnknownBrokerError(BrokerNotAvailableError):
    """The cluster has no broker of that number, at least at the moment."""

    advice = ""


class ClientClosedError(KafkaError):
    """The client was closed while something was under way, or before it began."""

    code = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, detail: str = "The client is closed.", /) -> None:
        super().__init__(detail)


class DeadlineError(RequestTimedOutError):
    """The time that the caller gave is used up."""


class UnknownTopicError(UnknownTopicOrPartitionError):
    """The cluster has no such topic, or the topic no such partition."""

    @classmethod
    def topic(cls, name: str) -> "UnknownTopicError":
        return cls(f"There is no topic {name!r}.")

    @classmethod
    def partition(cls, name: str, partition: int, partition_count: int) -> "UnknownTopicError":
        last = partition_count - 1
        there_are = "partition 0 only" if last == 0 else f"partitions 0 to {last}"
        return cls(f"Topic {name!r} has no partition {partition}: it has {there_are}.")


class UnknownGroupError(GroupIdNotFoundError):
    """The cluster has no such group."""

    @classmethod
    def group(cls, group_id: str) -> "UnknownGroupError":
        return cls(f"There is no group {group_id!r}.")


class SeveralFailedError(KafkaError):
    """An operation on several things failed for more than one of them.

    `outcomes` has what became of each, those that were done too. The code is that of the first.
    """

    def __init__(self, code: ErrorCode, detail: str, outcomes: Mapping[Any, Any] | None = None, /):
        super().__init__(code, detail)
        self.outcomes: Mapping[Any, Any] = outcomes or {}

    @classmethod
    def of(cls, outcomes: Mapping[Any, Any]) -> "SeveralFailedError":
        failures = {
            key: outcome for key, outcome in outcomes.items() if isinstance(outcome, KafkaError)
        }
        told = [f"{key}: {failure}" for key, failure in failures.items()]
        left = len(told) - _TOLD_MAX
        if left > 0:
            told[_TOLD_MAX:] = [f"and {left} more."]
        first = next(iter(failures.values()))
        return cls(
            first.code, f"{len(failures)} of {len(outcomes)} failed. {' '.join(told)}", outcomes
        )


def topic_refusal(error_code: int, error_message: str | None, name: str) -> KafkaError:
    """The error for an answer's code about a whole topic."""
    if error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return UnknownTopicError.topic(name)
    return refusal(error_code, error_message, f"Topic {name!r}")


def group_refusal(error_code: int, error_message: str | None, group_id: str) -> KafkaError:
    """The error for an answer's code about a whole group."""
    if error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return UnknownGroupError.group(group_id)
    return refusal(error_code, error_message, f"Group {group_id!r}")


def refusal(error_code: int, error_message: str | None, subject: str) -> KafkaError:
    """The error for an answer's code; `subject` says what it is about where the broker did not."""
    code = ErrorCode.from_wire(error_code)
    if error_message:
        return error_for(code, _as_sentence(error_message))
    if code is ErrorCode.UNKNOWN_SERVER_ERROR and error_code != code:
        return error_for(code, f"{subject}: The broker answered with error code {error_code}.")
    return error_for(code, f"{subject}: {code.message}")


def _as_sentence(text: str) -> str:
    """One line that ends like a sentence."""
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?")) else f"{line}."
