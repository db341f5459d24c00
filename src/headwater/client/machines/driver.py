"""Drives sans-io machines on an event loop: sends what they ask for, hands back what comes of it.

Requests to one broker over one lane leave in the order in which they were asked for, also while the
connection is still being made: a producer's order depends on it. A request that is not answered in
time costs its connection, because nobody knows any more what the broker has done. A broker that
cannot be connected to may have another address by now, so the brokers are asked for anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from headwater.base.errors import ErrorCode, KafkaError, NetworkError
from headwater.client.connection.cluster_connection import ClusterConnection, Lane
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import find_coordinators
from headwater.client.errors import (
    BrokerUnreachableError,
    ClientClosedError,
    NoBrokerError,
    UnknownBrokerError,
    refusal,
)
from headwater.client.machines.ask import Ask, CoordinatorOf, Machine
from headwater.net.peer_channel import PeerChannel
from headwater.net.peer_errors import PeerTimeoutError
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey
from headwater.wire.codec import UnencodableMessageError

#: A broker, or any, and the lane: requests to one place keep their order.
Place = tuple[int | None, Lane]


class Driver:
    """Owned by one loop; `wake` after anything that machines may react to."""

    def __init__(
        self,
        connection: ClusterConnection,
        coordinators: CoordinatorCache,
        machines: Sequence[Machine],
    ) -> None:
        self._connection = connection
        self._coordinators = coordinators
        self._machines = list(machines)
        self._loop = asyncio.get_running_loop()
        self._step_is_due = False
        self._timer: asyncio.Handle | None = None
        # Kept here, because for a time that is over uvloop gives a handle that cannot tell it.
        self._timer_at_s: float | None = None
        self._is_closed = False
        #: What waits for a channel that is being opened, in order: later ones wait behind it.
        self._waiting: dict[Place, list[Ask]] = {}
        #: In the order of their start, which is the one in which they are ended.
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._address_search: asyncio.Task[None] | None = None
        self._searches: dict[CoordinatorOf, asyncio.Task[int]] = {}
        #: Those that were looked for before.
        self._searched: set[CoordinatorOf] = set()

    def wake(self) -> None:
        """Ask the machines soon; many calls at once cost no more than one."""
        if not self._step_is_due and not self._is_closed:
            self._step_is_due = True
            self._loop.call_soon(self._step)

    async def close(self) -> None:
        """Send nothing any more; what is under way fails."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self._tasks, *self._searches.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    def _step(self) -> None:
        self._step_is_due = False
        if self._is_closed:
            return
        now_s = self._loop.time()
        for machine in self._machines:
            for ask in machine.asks(now_s):
                self._send(ask)
        self._set_timer(now_s)

    def _set_timer(self, now_s: float) -> None:
        times_s = [machine.wake_at_s(now_s) for machine in self._machines]
        next_s = min((time_s for time_s in times_s if time_s is not None), default=None)
        if self._timer is not None:
            if self._timer_at_s == next_s:
                return
            self._timer.cancel()
            self._timer = None
        if next_s is not None:
            self._timer_at_s = next_s
            self._timer = self._loop.call_at(next_s, self._time_came)

    def _time_came(self) -> None:
        self._timer = None
        self.wake()

    # -- sending ---------------------------------------------------------------------------------

    def _send(self, ask: Ask) -> None:
        target = ask.target
        if not isinstance(target, CoordinatorOf):
            self._send_to((target, ask.lane), ask)
            return
        broker_id = self._coordinators.get(target)
        if broker_id is None:
            self._start(self._find_and_send(target, ask))
        else:
            self._send_to((broker_id, ask.lane), ask)

    def _send_to(self, place: Place, ask: Ask) -> None:
        waiting = self._waiting.get(place)
        if waiting is not None:
            waiting.append(ask)
            return
        channel = self._connection.open_channel(*place)
        if channel is not None:
            self._send_over(channel, ask)
            return
        self._waiting[place] = [ask]
        self._start(self._open(place))

    async def _open(self, place: Place) -> None:
        """Send what waits for a channel, in order, once that is there."""
        try:
            channel = await self._connection.channel(*place)
        except KafkaError as error:
            if place[0] is not None and self._address_search is None:
                self._address_search = self._start(self._find_addresses())
            for ask in self._waiting.pop(place):
                self._failed(ask, _passing(error))
        except asyncio.CancelledError:
            for ask in self._waiting.pop(place):
                self._failed(ask, ClientClosedError())
            raise
        else:
            for ask in self._waiting.pop(place):
                self._send_over(channel, ask)

    async def _find_and_send(self, coordinator: CoordinatorOf, ask: Ask) -> None:
        try:
            broker_id = await self._find(coordinator)
        except KafkaError as error:
            self._failed(ask, _passing(error))
        except asyncio.CancelledError:
            self._failed(ask, ClientClosedError())
            raise
        else:
            self._send_to((broker_id, ask.lane), ask)

    async def _find_addresses(self) -> None:
        try:
            with contextlib.suppress(KafkaError):
                await self._connection.refresh(())
        finally:
            self._address_search = None

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def _send_over(self, channel: PeerChannel, ask: Ask) -> None:
        try:
            version = self._version_of(channel, ask)
            if not ask.is_answered:
                channel.send_without_answer(ask.request, version=version)
                ask.on_answer(None, self._loop.time())
                self.wake()
                return
            future = channel.send_nowait(ask.request, version=version)
        except (KafkaError, UnencodableMessageError) as failure:
            error = failure
            if not isinstance(error, KafkaError):
                # Something that a user gave is not what the protocol has a place for.
                error = refusal(ErrorCode.INVALID_REQUEST, str(error), "")
            # Told later, since a machine is not called back while it is being asked.
            self._loop.call_soon(self._failed, ask, error)
            return
        limit = self._loop.call_later(ask.timeout_s, self._took_too_long, channel, ask)
        future.add_done_callback(partial(self._answered, ask, limit))

    def _version_of(self, channel: PeerChannel, ask: Ask) -> int | None:
        if ask.version_max is None:
            return None
        api_key = ApiKey(ask.request.API_KEY)
        theirs = channel.versions.get(api_key, SCHEMA_VERSIONS[api_key])
        return min(theirs.highest, ask.request.VERSIONS.highest, ask.version_max)

    def _took_too_long(self, channel: PeerChannel, ask: Ask) -> None:
        name = ApiKey(ask.request.API_KEY).name
        channel.give_up(
            PeerTimeoutError(
                f"{channel.peer} has not answered a {name} request within {ask.timeout_s:g} s."
            )
        )

    # -- outcomes --------------------------------------------------------------------------------

    def _answered(self, ask: Ask, limit: asyncio.TimerHandle, future: asyncio.Future[Any]) -> None:
        limit.cancel()
        if future.cancelled():
            self._failed(ask, ClientClosedError())
            return
        error = future.exception()
        if error is None:
            ask.on_answer(future.result(), self._loop.time())
            self.wake()
        elif isinstance(error, KafkaError):
            self._failed(ask, error)
        else:
            raise error

    def _failed(self, ask: Ask, error: KafkaError) -> None:
        is_lost = isinstance(error, NetworkError | PeerTimeoutError)
        if isinstance(ask.target, CoordinatorOf) and is_lost:
            self._coordinators.forget(ask.target)
        ask.on_failure(error, self._loop.time())
        self.wake()

    async def _find(self, coordinator: CoordinatorOf) -> int:
        """Look for a coordinator; many who need the same one share the search."""
        known = self._coordinators.get(coordinator)
        if known is not None:
            return known
        search = self._searches.get(coordinator)
        if search is None:
            search = self._searches[coordinator] = self._loop.create_task(self._search(coordinator))
            search.add_done_callback(lambda _: self._searches.pop(coordinator, None))
        return await asyncio.shield(search)

    async def _search(self, coordinator: CoordinatorOf) -> int:
        if not self._connection.metadata.brokers:
            await self._connection.refresh(())
        kind, key = coordinator
        # Not always the same broker: one that is cut off from its cluster goes on believing that
        # it coordinates what others have long taken over.
        broker_id = self._connection.draw_broker() if coordinator in self._searched else None
        self._searched.add(coordinator)
        found = (await find_coordinators(self._connection, kind, [key], broker_id))[key]
        if isinstance(found, KafkaError):
            # It may be a broker that the metadata do not have yet.
            await self._connection.refresh(())
            raise found
        self._coordinators.learn(coordinator, found)
        return found


def _passing(error: KafkaError) -> KafkaError:
    """A cluster that was there, and a broker that a machine has just heard of, may come back.

    To a machine both are as good as a connection that cannot be made.
    """
    if isinstance(error, NoBrokerError | UnknownBrokerError):
        return BrokerUnreachableError(str(error))
    return error
