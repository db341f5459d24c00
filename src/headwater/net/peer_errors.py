"""What can go wrong between this process and a peer that it connects to."""

from headwater.base.errors import ErrorCode, KafkaError


class PeerUnavailableError(KafkaError):
    """The peer could not be connected to, or the connection to it was lost."""

    code = ErrorCode.NETWORK_EXCEPTION


class PeerTimeoutError(KafkaError):
    """The peer is connected, but has not answered in time."""

    code = ErrorCode.REQUEST_TIMED_OUT


class UnsupportedVersionError(KafkaError):
    """There is no version of the request that both sides speak."""

    code = ErrorCode.UNSUPPORTED_VERSION
