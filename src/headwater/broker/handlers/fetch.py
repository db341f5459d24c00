"""Fetch (key 1): read record batches of partitions, waiting for them if need be.

An answer holds regions of log files, not bytes: the connection sends them from the page cache.
A consumer is served by the leader, by a follower as far as that knows records to be committed
(from version 11 on), or is told of a follower that is nearer to it.

A follower's request tells the leader how far it is; it waits for appends, and a higher high
watermark alone is no reason to answer it. What a leader acknowledges rests on that, so only the
broker with that replica id may say so: others hear CLUSTER_AUTHORIZATION_FAILED, and nothing is
noted.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.fetch.answer import FetchAnswer
from headwater.broker.fetch.replica_session import ReplicaSession
from headwater.broker.fetch.session import FINAL_EPOCH, INVALID_SESSION_ID, FetchSession
from headwater.broker.fetch.sessions import is_incremental
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ExchangeHandler
from headwater.broker.settings.rows.replication import RACK_AWARE_SELECTOR
from headwater.replication.fetch import (
    CONSUMER_REPLICA_ID,
    Fetched,
    FetchedPartition,
    FetchLimits,
    FetchTarget,
    note_follower,
    read_partitions,
)
from headwater.replication.throttling.throttles import ReplicationThrottles
from headwater.replication.waiting.delayed_fetch import DelayedFetch, DelayedReplicaFetch
from headwater.replication.waiting.purgatory import DelayedOperation
from headwater.wire.api_keys import ApiKey
from headwater.wire.codec import decode
from headwater.wire.frames import RequestHeader, encode_response
from headwater.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    ReplicaState,
)

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext
    from headwater.net.exchange import Exchange

_BY_ID_SINCE = 13
_READ_COMMITTED = 1
#: From here on a consumer says where it is, and understands being sent to another replica.
_BY_RACK_SINCE = 11
#: A connection with a fetch under way is not idle, so one that is dead would be noticed only then.
_WAIT_MAX_MS = 300_000
#: Clients round the time until their deadline down to milliseconds. An answer of nothing but a
#: header must not come before that deadline: see docs/clients.md on kafka-go.
_ROUNDED_OFF_MS = 1


def handle(exchange: Exchange, context: RequestContext) -> None:
    header = context.header
    request, _ = decode(FetchRequest, exchange.frame, header.api_version, header.body_position)
    by_id = header.api_version >= _BY_ID_SINCE
    targets = _targets(request)
    replica = _replica(request)
    try:
        if replica.replica_id >= 0:
            context.check_speaks_for(replica.replica_id)
        session = _session(request, replica, targets, by_id=by_id, context=context)
    except KafkaError as error:
        response = FetchResponse(error_code=error.code)
        _send(exchange, header, response)
        context.record_response(response)
        return
    incremental = is_incremental(request.session_epoch)
    if isinstance(session, ReplicaSession):
        session.begin_fetch(context.broker.clock.monotonic_ms())
    if session is not None and incremental:
        targets = session.targets()
    fetch = _Fetch(exchange, context, session, targets, is_incremental=incremental)
    fetch.limits = FetchLimits(
        max_bytes=min(request.max_bytes, context.broker.settings.integer("fetch.max.bytes")),
        min_bytes=request.min_bytes,
        max_wait_ms=min(request.max_wait_ms, _WAIT_MAX_MS),
        committed_only=request.isolation_level == _READ_COMMITTED,
        replica_id=replica.replica_id,
        replica_epoch=replica.replica_epoch,
        may_read_followers=header.api_version >= _BY_RACK_SINCE and replica.replica_id < 0,
        reader_rack=_reader_rack(request, context) if request.rack_id else "",
        throttles=_throttles(context) if replica.replica_id >= 0 else None,
    )
    fetch.start()


def _reader_rack(request: FetchRequest, context: RequestContext) -> str:
    """The rack to find a replica in; empty if this broker does not choose by racks."""
    chosen = context.broker.settings.optional_text("replica.selector.class")
    return request.rack_id if chosen == RACK_AWARE_SELECTOR else ""


def _throttles(context: RequestContext) -> ReplicationThrottles | None:
    """Where followers may have only so much; None while none of them is throttled."""
    throttles = context.broker.partitions.throttles
    return throttles if throttles.leading else None


def _replica(request: FetchRequest) -> ReplicaState:
    """The broker that asks as a follower, if it is one."""
    if request.replica_id >= 0:  # Before v15.
        return ReplicaState(replica_id=request.replica_id)
    return request.replica_state


def _targets(request: FetchRequest) -> list[FetchTarget]:
    return [
        FetchTarget(
            topic.topic,
            topic.topic_id,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def _session(
    request: FetchRequest,
    replica: ReplicaState,
    targets: list[FetchTarget],
    *,
    by_id: bool,
    context: RequestContext,
) -> FetchSession | None:
    """The session that a request goes on with or starts; None if it wants or gets none."""
    replica_id = max(replica.replica_id, CONSUMER_REPLICA_ID)
    sessions = context.broker.fetch_sessions
    now_ms = int(context.broker.loop_time() * 1000)
    if is_incremental(request.session_epoch):
        forgotten = [
            (topic.topic_id if by_id else topic.topic, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        ]
        return sessions.continue_session(
            request.session_id,
            request.session_epoch,
            targets,
            forgotten,
            by_id=by_id,
            replica_id=replica_id,
            now_ms=now_ms,
        )
    if request.session_id != INVALID_SESSION_ID:
        sessions.close_session(request.session_id, replica_id)
    if request.session_epoch == FINAL_EPOCH:
        return None
    return sessions.start_session(targets, by_id=by_id, replica_id=replica_id, now_ms=now_ms)


class _Fetch:
    """One request, until it is answered."""

    __slots__ = (
        "_context",
        "_exchange",
        "_is_incremental",
        "_session",
        "_targets",
        "limits",
    )

    def __init__(
        self,
        exchange: Exchange,
        context: RequestContext,
        session: FetchSession | None,
        targets: list[FetchTarget],
        *,
        is_incremental: bool,
    ) -> None:
        self._exchange = exchange
        self._context = context
        self._session = session
        self._targets = targets
        self._is_incremental = is_incremental
        self.limits = FetchLimits(0)

    def start(self) -> None:
        limits = self.limits
        broker = self._context.broker
        session = self._session if isinstance(self._session, ReplicaSession) else None
        if limits.is_follower:
            clock = None if session is None else session.clock
            note_follower(broker.partitions, self._targets, limits, clock)
        fetched = self._read()
        if (
            limits.max_wait_ms <= 0
            or fetched.size_bytes >= limits.min_bytes
            or fetched.is_urgent
            or (not self._targets and session is None)
        ):
            self._answer(fetched)
            return
        if session is None:
            operation = DelayedFetch(fetched.partitions, limits, self._answer_late)
            parked = broker.parked.follower_fetch if limits.is_follower else broker.parked.fetch
            wait_ms = _wait_ms(fetched, limits)
            parked.park(operation, wait_ms, operation.keys)
            self._exchange.on_abandoned = lambda: self._abandon(operation)
        else:
            self._wait_in_session(session, fetched)

    def _wait_in_session(self, session: ReplicaSession, fetched: Fetched) -> None:
        """Wait for something to happen to any of a follower's partitions."""

        def respond(fetched: Fetched) -> None:
            session.on_wake = None
            self._answer(fetched)

        session.watch(fetched.partitions)
        operation = DelayedReplicaFetch(self.limits, self._read, respond)
        session.on_wake = operation.wake
        wait_ms = _wait_ms(fetched, self.limits)
        self._context.broker.parked.follower_fetch.park(operation, wait_ms, ())
        self._exchange.on_abandoned = lambda: self._abandon(operation)

    def _abandon(self, operation: DelayedOperation[TopicPartition]) -> None:
        operation.cancel()
        self._exchange.answer_nothing()

    def _read(self) -> Fetched:
        session, targets = self._session, self._targets
        if self._is_incremental and isinstance(session, ReplicaSession):
            targets = session.targets()  # Others may have been touched meanwhile.
        return read_partitions(self._context.broker.partitions, targets, self.limits)

    def _answer_late(self) -> None:
        self._answer(self._read())

    def _answer(self, fetched: Fetched) -> None:
        session = self._session
        shown: Iterable[FetchedPartition] = fetched.partitions
        if session is not None:
            if isinstance(session, ReplicaSession):
                session.watch(fetched.partitions)
            news = session.take_note(fetched.partitions)
            if self._is_incremental:
                shown = news
        answer = FetchAnswer(self._context, self.limits)
        session_id = INVALID_SESSION_ID if session is None else session.session_id
        _send(self._exchange, self._context.header, answer.response(session_id, shown))
        self._context.record_answer()


def _wait_ms(fetched: Fetched, limits: FetchLimits) -> int:
    """How long a fetch waits at most: no longer than until a throttle lets something through."""
    if fetched.held_back_ms is not None:
        return min(limits.max_wait_ms, max(1, ceil(fetched.held_back_ms)))
    return limits.max_wait_ms + (_ROUNDED_OFF_MS if fetched.has_bare else 0)


def _send(exchange: Exchange, header: RequestHeader, response: FetchResponse) -> None:
    exchange.answer(
        encode_response(ApiKey.FETCH, header.api_version, header.correlation_id, response)
    )


API = ExchangeHandler(CARDS[ApiKey.FETCH], handle)
