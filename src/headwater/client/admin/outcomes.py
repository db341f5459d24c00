"""The outcome of an operation on several things: a value or an error for each.

A request names many topics or partitions, and each may fail for itself. `settle` repeats the
request for those whose error may pass, until all have an outcome or the time is up.

Who changes something and does not look at the outcomes must hear of a failure all the same, so
operations that change the cluster raise, unless they are called with `raise_errors=False`. Those
that only ask return their outcomes: nothing can be done with an answer without looking at it.
"""

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from typing import TypeAlias, TypeVar

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.retry import may_retry
from headwater.client.errors import DeadlineError, SeveralFailedError
from headwater.client.kafka_errors import UnknownServerError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Operations:
    """Operations of one area on one cluster."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.connection = connection


Outcomes: TypeAlias = dict[Key, Value | KafkaError]


def require_all(outcomes: Mapping[Key, Value | KafkaError]) -> dict[Key, Value]:
    """All values; raises the first error if there is one."""
    values: dict[Key, Value] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            raise outcome
        values[key] = outcome
    return values


def raised_or_returned(outcomes: Outcomes[Key, Value], raise_errors: bool) -> Outcomes[Key, Value]:
    """The outcomes of an operation that changes something.

    Raises the error if one has failed, and `SeveralFailedError` if more have.
    """
    failures = {
        key: outcome for key, outcome in outcomes.items() if isinstance(outcome, KafkaError)
    }
    if not raise_errors or not failures:
        return outcomes
    if len(failures) > 1:
        raise SeveralFailedError.of(outcomes)
    [(key, failure)] = failures.items()
    if str(key) not in str(failure):
        failure.add_note(f"This is about {key}.")
    raise failure


async def settle(
    connection: ClusterConnection,
    keys: Collection[Key],
    attempt: Callable[[list[Key]], Awaitable[Outcomes[Key, Value]]],
    what: str,
    *,
    timeout_s: float | None = None,
    unknown_topic_is_final: bool = True,
) -> Outcomes[Key, Value]:
    """An outcome for each key, by as many attempts as it takes; `what` names the operation."""
    outcomes: Outcomes[Key, Value] = {}
    pending = list(dict.fromkeys(keys))

    async def attempt_pending() -> None:
        nonlocal pending
        answered = await attempt(pending)
        passing: KafkaError | None = None
        left: list[Key] = []
        for key in pending:
            outcome = answered[key] if key in answered else not_answered(key)
            if isinstance(outcome, KafkaError) and may_retry(
                outcome, unknown_topic_is_final=unknown_topic_is_final
            ):
                passing = passing or outcome
                left.append(key)
            else:
                outcomes[key] = outcome
        pending = left
        if passing is not None:
            raise _Passing(passing)

    if pending:
        try:
            await connection.retrying(attempt_pending, what, timeout_s=timeout_s)
        except DeadlineError as error:
            outcomes.update(dict.fromkeys(pending, error))
    return {key: outcomes[key] for key in dict.fromkeys(keys)}


class _Passing(KafkaError):
    """Some keys met an error that may pass. Its code is always retriable."""

    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(str(cause))


def not_answered(key: object) -> KafkaError:
    """The error for what an answer says nothing of."""
    return UnknownServerError(f"The broker's answer left out {key}, which was asked for.")
