"""Drives sans-io machines on an event loop: sends what they ask for, hands back what comes of it.

Requests to one broker over one lane leave in the order in which they were asked for, also while the
connection is still being made: a producer's order depends on it. A request that is not answered in
time costs its connection, because nobody knows any more what the broker has done.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from headwater.base.errors import KafkaError, NetworkError
from headwater.client.ask import Ask, CoordinatorOf, Machine
from headwater.client.cluster_connection import ClusterConnection, Lane
from headwater.client.coordinator_cache import CoordinatorCache
from headwater.client.coordinators import find_coordinators
from headwater.client.errors import (
    BrokerUnreachableError,
    ClientClosedError,
    NoBrokerError,
    UnknownBrokerError,
)
from headwater.net.peer_channel import PeerChannel
from headwater.net.peer_errors import PeerTimeoutError
from headwater.wire.api_keys import SCHEMA_VERSIONS, ApiKey


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
        #: Asks that wait for a channel, by broker and lane, so that later ones wait behind them.
        self._opening: Counter[tuple[int | None, Lane]] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._searches: dict[CoordinatorOf, asyncio.Task[int]] = {}

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
        broker_id = self._coordinators.get(target) if isinstance(target, CoordinatorOf) else target
        is_known = broker_id is not None or target is None
        if is_known and not self._opening[(broker_id, ask.lane)]:
            channel = self._connection.open_channel(broker_id, ask.lane)
            if channel is not None:
                self._send_over(channel, ask)
                return
        task = self._loop.create_task(self._open_and_send(ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open_and_send(self, ask: Ask) -> None:
        try:
            target = ask.target
            broker_id = await self._find(target) if isinstance(target, CoordinatorOf) else target
            place = (broker_id, ask.lane)
            self._opening[place] += 1
            try:
                channel = await self._connection.channel(broker_id, ask.lane)
            finally:
                self._opening[place] -= 1
            self._send_over(channel, ask)
        except (NoBrokerError, UnknownBrokerError) as error:
            # A cluster that was there, and a broker that the machine has just heard of, may come
            # back: to a machine both are as good as a connection that cannot be made.
            self._failed(ask, BrokerUnreachableError(str(error)))
        except KafkaError as error:
            self._failed(ask, error)
        except asyncio.CancelledError:
            self._failed(ask, ClientClosedError())
            raise

    def _send_over(self, channel: PeerChannel, ask: Ask) -> None:
        try:
            version = self._version_of(channel, ask)
            if not ask.is_answered:
                channel.send_without_answer(ask.request, version=version)
                ask.on_answer(None, self._loop.time())
                self.wake()
                return
            future = channel.send_nowait(ask.request, version=version)
        except KafkaError as error:
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
        found = (await find_coordinators(self._connection, kind, [key]))[key]
        if isinstance(found, KafkaError):
            # It may be a broker that the metadata do not have yet.
            await self._connection.refresh(())
            raise found
        self._coordinators.learn(coordinator, found)
        return found
