"""What can go wrong between this process and a peer that it connects to."""

from headwater.base.errors import NetworkError, RequestTimedOutError, UnsupportedVersionError

__all__ = ["PeerTimeoutError", "PeerUnavailableError", "UnsupportedVersionError"]


class PeerUnavailableError(NetworkError):
    """The peer could not be connected to, or the connection to it was lost."""


class PeerTimeoutError(RequestTimedOutError):
    """The peer is connected, but has not answered in time."""
