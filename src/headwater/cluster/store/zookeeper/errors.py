"""What kazoo raises, in the words of the metadata store."""

from __future__ import annotations

from typing import Any, Final

from kazoo import exceptions as kazoo_errors

from headwater.cluster.store.errors import (
    AccessDeniedError,
    BadVersionError,
    InvalidPathError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    StoreError,
)

_REFUSALS: Final[dict[Any, type[StoreError]]] = {
    kazoo_errors.NoNodeError: NoNodeError,
    kazoo_errors.NodeExistsError: NodeExistsError,
    kazoo_errors.BadVersionError: BadVersionError,
    kazoo_errors.NotEmptyError: NotEmptyError,
    kazoo_errors.NoChildrenForEphemeralsError: NoChildrenForEphemeralsError,
    kazoo_errors.BadArgumentsError: InvalidPathError,
    kazoo_errors.NoAuthError: AccessDeniedError,
    kazoo_errors.InvalidACLError: AccessDeniedError,
    # The request was not carried out: the session, or the client, had ended before.
    kazoo_errors.SessionExpiredError: SessionExpiredError,
    kazoo_errors.ConnectionClosedError: SessionExpiredError,
    kazoo_errors.AuthFailedError: SessionExpiredError,
}

# Of the results of a transaction that was refused, those of operations that were not the reason.
_NOT_THE_REASON: Final = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


def is_connection_loss(error: BaseException) -> bool:
    """Whether the request may or may not have been carried out."""
    return isinstance(error, kazoo_errors.ConnectionLoss | kazoo_errors.OperationTimeoutError)


def is_error(result: object) -> bool:
    """Whether an operation's result within a transaction is an error."""
    return isinstance(result, kazoo_errors.KazooException)


def is_reason(result: object) -> bool:
    """Whether it is the error for which the transaction was refused."""
    return is_error(result) and not isinstance(result, _NOT_THE_REASON)


def store_error(error: BaseException, path: str) -> BaseException:
    """The store's error for an operation on `path`; what is no refusal stays what it is."""
    found = _REFUSALS.get(type(error))
    if found is None and isinstance(error, kazoo_errors.ZookeeperError):
        found = StoreError
    if found is None:
        return error
    refusal = found(path)
    refusal.__cause__ = error
    return refusal
