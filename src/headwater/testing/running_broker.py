"""A broker in this process, on a thread and an event loop of its own, for tests.

It is a whole broker: any client in any language reaches it through its port. Only two things differ
from one in production: nothing waits for the disk, and it listens on a free port of this machine.
Its owner is whoever made it; its methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sys
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import uvloop

from headwater.base.checks import check
from headwater.base.errors import KafkaError
from headwater.broker.environment import BrokerEnvironment
from headwater.broker.server import BrokerServer
from headwater.broker.settings.static_settings import static_of
from headwater.cluster.topics.new_topic import NewTopic
from headwater.delivery.dead_letter_moves import open_session
from headwater.testing.unsynced_files import UnsyncedFiles

T = TypeVar("T")

HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 60.0

#: What a broker of tests has instead of the defaults; whoever makes one has the last word.
TEST_SETTINGS: Final = {
    "broker.id": "0",
    "acks.all.flush": "off",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Its disk is not the one to run full, and a start should write next to nothing.
    "log.dir.reserve.bytes": "0",
}


class RunningBroker:
    """A broker that serves from the moment it is made until `stop`. It is a context manager."""

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        port: int = 0,
    ) -> None:
        """Without `data_dir` the data lies in a temporary directory that goes with the broker."""
        self._temporary = tempfile.mkdtemp(prefix="headwater-") if data_dir is None else None
        self.data_dir = Path(self._temporary or data_dir or "")
        self._settings = dict(settings or {})
        self.host = HOST
        self.port = port
        self._topic_numbers = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: BrokerServer | None = None
        try:
            self.start()
        except BaseException:
            self._remove_temporary()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Headwater broker at {self.bootstrap}, data in {self.data_dir}>"

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def metrics_address(self) -> str | None:
        """Where /metrics is served, if the setting `metrics.listen` says so."""
        return self._serving().metrics_address

    @property
    def is_running(self) -> bool:
        return self._server is not None

    # -- topics ----------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic and return its name, which is a new one where none is given."""
        topic = name or f"test-{next(self._topic_numbers)}"
        request = NewTopic(topic, partitions, 1, configs=dict(configs or {}))
        results = self._run(self._serving().context.controller.create_topics([request]))
        result = results[topic]
        if isinstance(result, KafkaError):
            raise result
        return topic

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all of its records."""
        results = self._run(self._serving().context.controller.delete_topics([name]))
        error = results[name]
        if error is not None:
            raise error

    def topics(self) -> list[str]:
        """The names of all topics."""
        return sorted(self._serving().context.image.topics)

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start again after `stop`, on the same port and with the same data."""
        check(self._thread is None, "the broker is running already")
        started: Future[BrokerServer] = Future()
        self._thread = threading.Thread(
            target=self._serve, args=(started,), name="headwater-broker", daemon=True
        )
        self._thread.start()
        try:
            self._server = started.result(START_TIMEOUT_S)
        except BaseException:
            self._end_thread()
            raise
        self.port = self._server.listeners.endpoints[0].port

    def stop(self) -> None:
        """Stop it as SIGTERM would; the data stays for another `start`."""
        server, self._server = self._server, None
        if server is not None:
            try:
                self._run(server.stop())
            finally:
                self._end_thread()

    def restart(self) -> None:
        """Stop and start: clients see their connections close, and find all data again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it for good, and remove what was temporary."""
        self.stop()
        self._remove_temporary()

    def _serve(self, started: Future[BrokerServer]) -> None:
        """On the broker's thread: start it, then run its loop until it is stopped."""
        # The broker tunes this for itself; whoever runs it in a test has a say again afterwards.
        switch_interval_s = sys.getswitchinterval()
        loop = self._loop = uvloop.new_event_loop()
        try:
            server = loop.run_until_complete(self._start_server())
        except BaseException as error:
            loop.close()
            started.set_exception(error)
        else:
            started.set_result(server)
            loop.run_forever()
            loop.close()
        finally:
            sys.setswitchinterval(switch_interval_s)

    async def _start_server(self) -> BrokerServer:
        settings = static_of(
            {
                **TEST_SETTINGS,
                "listeners": f"PLAINTEXT://{HOST}:{self.port}",
                "log.dirs": str(self.data_dir),
                **self._settings,
            },
            "the settings of the test's broker",
        )
        server = BrokerServer(
            settings, BrokerEnvironment(files=UnsyncedFiles(), open_move_session=open_session)
        )
        await server.start()
        return server

    def _run(self, work: Coroutine[object, object, T]) -> T:
        """Run something on the broker's loop, and wait for it here."""
        loop = self._loop
        if loop is None or loop.is_closed():
            work.close()
            raise RuntimeError("The broker is not running.")
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _serving(self) -> BrokerServer:
        if self._server is None:
            raise RuntimeError("The broker is not running.")
        return self._server

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)
        if thread is not None:
            thread.join()

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
