"""Which topics records can be forwarded to.

A producer waits for a topic that it does not know, which would hold up all that is due behind it.
So topics are looked up before: what the cluster does not have, and does not create when asked, is
told at once for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.connection.cluster_metadata import PartitionInfo
from headwater.delivery.delay_service.destination import Destination, UndeliverableError

#: How long an answer holds. A refusal holds for less: topics are created, access is given.
_KNOWN_MS: Final = 300_000.0
_REFUSED_MS: Final = 30_000.0
#: A topic that has fewer partitions than a record wants may have got more since.
_RECHECK_MS: Final = 5_000.0
#: A cluster that creates topics when they are asked for gets so long to do it.
_CREATION_S: Final = 3.0

_MISSING: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
#: What looking again does not change.
_REFUSALS: Final = frozenset(
    {_MISSING, ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION}
)


class AsksForTopics(Protocol):
    """A producer, which makes the cluster create what it asks for, if the cluster does so."""

    async def partitions_for(self, topic: str) -> list[PartitionInfo]: ...


class _Known(NamedTuple):
    looked_ms: float
    partition_count: int
    #: A sentence if nothing can be sent there.
    refusal: str | None


class KnownTopics:
    """What has been found out; all levels of a service share it."""

    def __init__(self, admin: AsyncAdmin, monotonic_ms: Callable[[], float]) -> None:
        self._admin = admin
        self._monotonic_ms = monotonic_ms
        self._known: dict[str, _Known] = {}

    async def check(self, to: Destination, producer: AsksForTopics) -> None:
        """Raise `UndeliverableError` if nothing can be sent there.

        Raises another `KafkaError` if that cannot be found out.
        """
        known = self._known.get(to.topic)
        if known is None or self._is_old(known, to):
            known = await self._look(to.topic, producer)
            self._known[to.topic] = known
        if known.refusal is not None:
            raise UndeliverableError(known.refusal)
        if to.partition is not None and to.partition >= known.partition_count:
            raise UndeliverableError(
                f"The topic {to.topic!r} has no partition {to.partition}: it has "
                f"{known.partition_count}."
            )

    def refuse(self, topic: str, reason: str) -> None:
        """The cluster has refused what was sent there."""
        self._known[topic] = _Known(self._monotonic_ms(), 0, reason)

    def forget(self) -> None:
        """Something went wrong: a topic may be gone. What was missing stays so for its while."""
        self._known = {
            topic: known for topic, known in self._known.items() if known.refusal is not None
        }

    def _is_old(self, known: _Known, to: Destination) -> bool:
        age_ms = self._monotonic_ms() - known.looked_ms
        if known.refusal is not None:
            return age_ms > _REFUSED_MS
        wants_more = to.partition is not None and to.partition >= known.partition_count
        return age_ms > (_RECHECK_MS if wants_more else _KNOWN_MS)

    async def _look(self, topic: str, producer: AsksForTopics) -> _Known:
        found = (await self._admin.describe_topics([topic]))[topic]
        if isinstance(found, KafkaError) and found.code is _MISSING:
            with contextlib.suppress(KafkaError, TimeoutError):
                async with asyncio.timeout(_CREATION_S):
                    await producer.partitions_for(topic)
            found = (await self._admin.describe_topics([topic]))[topic]
        if not isinstance(found, KafkaError):
            return _Known(self._monotonic_ms(), len(found.partitions), None)
        if found.code not in _REFUSALS:
            raise found
        return _Known(self._monotonic_ms(), 0, str(found))
