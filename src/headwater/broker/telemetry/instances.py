"""The instances of clients that ask what to push, and that push: who may do so now.

An instance is one client object in one process; the broker gives it its id. It asks, and then it
pushes once an interval; who is earlier is refused (THROTTLING_QUOTA_EXCEEDED), for it is the broker
that says how much all of them together send. Allowed out of turn are: to ask again when the
subscriptions have changed or the broker has just refused the id or the codec, to push right after
asking, and to push a last time before closing, behind which nothing is taken any more.

Instances are told apart for three intervals, and at most `INSTANCES_MAX` of them; those that were
heard of least recently go first. One that is forgotten begins anew and loses nothing but its turn.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.telemetry.subscriptions import Request, Subscriptions

INSTANCES_MAX: Final = 16_384
_EXPIRY_MS_MIN: Final = 60_000
_EXPIRY_INTERVALS: Final = 3
#: Ids that mean nobody: zero, and one that Kafka keeps for itself.
RESERVED_IDS: Final = frozenset({uuid.UUID(int=0), uuid.UUID(int=1)})
_MAY_ASK_AGAIN: Final = (
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
_LONG_AGO: Final = float("-inf")


def expiry_ms(interval_ms: int) -> int:
    """How long a client that pushes so often is remembered."""
    return max(_EXPIRY_MS_MIN, _EXPIRY_INTERVALS * interval_ms)


class Instance:
    """What is known of one; `Instances` changes it."""

    __slots__ = ("error", "expires_ms", "has_ended", "last_asked", "last_pushed", "request", "seen")

    def __init__(self, request: Request, version: int) -> None:
        self.request = request
        #: The version of the subscriptions that the request was made from.
        self.seen = version
        self.last_asked = self.last_pushed = _LONG_AGO
        self.has_ended = False
        #: Why its last push was refused.
        self.error = ErrorCode.NONE
        self.expires_ms = 0.0

    def may_ask(self, now_ms: float) -> bool:
        """Whether it is its turn; if so it has taken it."""
        is_turn = now_ms - max(self.last_asked, self.last_pushed) >= self.request.interval_ms
        if is_turn:
            self.last_asked = now_ms
        return is_turn or self.error in _MAY_ASK_AGAIN

    def may_push(self, now_ms: float) -> bool:
        """The same for a push."""
        has_just_asked = self.last_asked > self.last_pushed
        is_turn = has_just_asked or now_ms - self.last_pushed >= self.request.interval_ms
        if is_turn:
            self.last_pushed = now_ms
        return is_turn


class Instances:
    """Those that were heard of lately; its owner is `ClientTelemetry`."""

    def __init__(self, subscriptions: Subscriptions, instances_max: int = INSTANCES_MAX) -> None:
        self._subscriptions = subscriptions
        self._instances_max = instances_max
        #: The ones heard of least recently first.
        self._instances: OrderedDict[uuid.UUID, Instance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance_id: uuid.UUID) -> bool:
        return instance_id in self._instances

    def ask(self, instance_id: uuid.UUID, client: Mapping[str, str], now_ms: float) -> Request:
        """What the client shall push; raises `KafkaError` if it is not its turn to ask."""
        instance = self._heard_of(instance_id, client, now_ms)
        if not instance.may_ask(now_ms):
            raise _too_early()
        instance.error = ErrorCode.NONE
        return instance.request

    def push(
        self,
        instance_id: uuid.UUID,
        client: Mapping[str, str],
        now_ms: float,
        *,
        subscription_id: int,
        is_last: bool,
    ) -> Instance:
        """Take note of a push; raises `KafkaError` if it is not to be taken."""
        instance = self._heard_of(instance_id, client, now_ms)
        if instance.has_ended:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "The client said before that this was its last push."
            )
        instance.has_ended = is_last
        if not instance.may_push(now_ms) and not is_last:
            instance.error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
            raise _too_early()
        if subscription_id != instance.request.subscription_id:
            instance.error = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
            raise KafkaError(
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "The client is to push something else by now."
            )
        instance.error = ErrorCode.NONE
        return instance

    def forget_expired(self, now_ms: float) -> None:
        """Let go of those that were not heard of for long."""
        gone = [each for each, held in self._instances.items() if held.expires_ms <= now_ms]
        for instance_id in gone:
            del self._instances[instance_id]

    def _heard_of(
        self, instance_id: uuid.UUID, client: Mapping[str, str], now_ms: float
    ) -> Instance:
        instance = self._instances.pop(instance_id, None)
        version = self._subscriptions.version
        if instance is None or instance.seen != version or instance.expires_ms <= now_ms:
            request = self._subscriptions.request_for(instance_id, client)
            instance = Instance(request, version)
        instance.expires_ms = now_ms + expiry_ms(instance.request.interval_ms)
        self._instances[instance_id] = instance
        if len(self._instances) > self._instances_max:
            self._instances.popitem(last=False)
        return instance


def _too_early() -> KafkaError:
    return KafkaError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client is to wait for its next interval."
    )
