"""What a metadata store answers when it refuses or cannot do an operation.

The refusals are ZooKeeper's, by name. `path` is the node that they are about: of a `multi`, it
tells which operation failed. A caller that expects one of them catches it; the others mean that
the program is wrong, or that somebody else changed the store.
"""

from headwater.base.errors import ErrorCode, KafkaError


class StoreError(Exception):
    """An operation that the store refused; nothing was changed."""

    _sentence = "The metadata store refused an operation on {path}."

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return self._sentence.format(path=self.path)


class NoNodeError(StoreError):
    """The node, or the parent of the one to be created, is not there."""

    _sentence = "The metadata store has no node {path}."


class NodeExistsError(StoreError):
    """A node of that path is there already."""

    _sentence = "The metadata store has a node {path} already."


class BadVersionError(StoreError):
    """Somebody changed the node since the version that the caller knows."""

    _sentence = "The node {path} was changed by somebody else."


class NotEmptyError(StoreError):
    """A node that has children cannot be deleted."""

    _sentence = "The node {path} has children and cannot be deleted."


class NoChildrenForEphemeralsError(StoreError):
    """An ephemeral node cannot be a parent."""

    _sentence = "The node {path} is ephemeral and cannot have children."


class InvalidPathError(StoreError):
    """The text is no path of a node."""

    _sentence = "{path!r} is not the path of a node."


class AccessDeniedError(StoreError):
    """The store does not let this client do that, because of how it made itself known."""

    _sentence = "The metadata store does not allow this client to use {path} as it wants to."


class SessionExpiredError(StoreError):
    """The session is over, by `close` or because the store gave it up."""

    _sentence = "The session with the metadata store is over, so {path} cannot be reached."


class UncertainWriteError(StoreError):
    """The connection to the store broke during a change; it may have been made or not."""

    _sentence = "Whether {path} was changed is not known: the metadata store could not be heard."


class StoreWriteError(KafkaError):
    """A change could not be made durable and was taken back."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class StoreUnreachableError(KafkaError):
    """No server of the store answered within the time that there was."""

    code = ErrorCode.NETWORK_EXCEPTION


class StoreFileError(Exception):
    """The file of an embedded store cannot be used; the message is a sentence for its owner."""
