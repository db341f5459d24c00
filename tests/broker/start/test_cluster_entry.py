"""A broker starts though its sessions with the metadata store end, and its writes get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from headwater.base.clocks import Clock, SystemClock
from headwater.base.threads import RunInThread
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.server import BrokerServer
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.store.embedded.journal import NullJournal
from headwater.cluster.store.embedded.session import EmbeddedSession
from headwater.cluster.store.embedded.store import EmbeddedConnector, EmbeddedStore
from headwater.cluster.store.errors import SessionExpiredError, UncertainWriteError
from headwater.cluster.store.metadata_store import Operation, Result, StoreConnector
from tests.support.brokers.controllers import until
from tests.support.brokers.running_broker import broker_settings


class FragileConnector(EmbeddedConnector):
    """The first session ends with its first operation, the second with its second, and so on."""

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store)
        self.is_fragile = True
        self.session_count = 0
        self._endings: set[asyncio.Task[None]] = set()

    async def connect(self) -> EmbeddedSession:
        session = await super().connect()
        self.session_count += 1
        last, numbers = self.session_count, count(1)

        def check_open(path: str) -> None:
            if next(numbers) == last and self.is_fragile:
                session.is_over = True
                ending = asyncio.ensure_future(self._store.expire(session.session_id))
                self._endings.add(ending)
                ending.add_done_callback(self._endings.discard)
            if session.is_over:
                raise SessionExpiredError(path)

        vars(session)["_check_open"] = check_open
        return session


class LossyConnector(EmbeddedConnector):
    """Nobody hears what became of the first writes: one is done, one is not, and so on."""

    LOST_COUNT = 6

    def __init__(self, store: EmbeddedStore) -> None:
        super().__init__(store)
        self.lost_count = 0

    async def connect(self) -> EmbeddedSession:
        session = await super().connect()
        multi = session.multi

        async def lossy(operations: Sequence[Operation]) -> list[Result]:
            if self.lost_count == self.LOST_COUNT:
                return await multi(operations)
            self.lost_count += 1
            if self.lost_count % 2:
                await multi(operations)
            raise UncertainWriteError(operations[0].path)

        vars(session)["multi"] = lossy
        return session


def server_with(connector: StoreConnector, directory: Path) -> BrokerServer:
    async def open_store(
        _settings: BrokerSettings, _path: str, _clock: Clock, _run: RunInThread
    ) -> StoreConnector:
        return connector

    # The id comes from the store too.
    texts = broker_settings(directory, {"broker.id": "-1"})
    return BrokerServer(static_of(texts), BrokerEnvironment(open_store=open_store))


def test_a_session_may_end_at_any_point_of_a_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        connector = FragileConnector(await EmbeddedStore.open(NullJournal(), SystemClock()))
        server = server_with(connector, tmp_path)
        async with asyncio.timeout(30):
            await server.start()
        connector.is_fragile = False
        try:
            assert connector.session_count > 5
            # The session in which the start came to its end may have been the last to end.
            member = server.context.member
            await until(lambda: member.is_controller and member.is_up_to_date)
        finally:
            await server.stop()
        assert "The session with the metadata store ended while the broker started" in caplog.text

    asyncio.run(run())


def test_writes_of_a_start_may_get_lost(tmp_path: Path) -> None:
    async def run() -> None:
        connector = LossyConnector(await EmbeddedStore.open(NullJournal(), SystemClock()))
        server = server_with(connector, tmp_path)
        async with asyncio.timeout(30):
            await server.start()
        try:
            assert connector.lost_count == connector.LOST_COUNT
            assert server.context.member.is_controller
        finally:
            await server.stop()

    asyncio.run(run())
