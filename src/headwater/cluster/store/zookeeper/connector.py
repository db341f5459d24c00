"""The way to a ZooKeeper ensemble: begins sessions, one after the other.

The address is `host:port,host:port/path`. The path, which may be left out, is where in the tree the
cluster lives; it is made if it is not there. Several clusters can so share an ensemble. The servers
must be those of ZooKeeper 3.6 or newer.

A session that is over is followed by a new one only when nothing of it is left: whoever comes back
must not find nodes of its own former self in its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from itertools import chain, repeat
from typing import Any, Final, NamedTuple, TypeVar

from kazoo.client import KazooClient
from kazoo.hosts import collect_hosts
from kazoo.security import CREATOR_ALL_ACL

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.store.errors import (
    InvalidPathError,
    NodeExistsError,
    SessionExpiredError,
    StoreUnreachableError,
    UncertainWriteError,
)
from headwater.cluster.store.metadata_store import Create
from headwater.cluster.store.node_paths import ROOT, split_path
from headwater.cluster.store.zookeeper.handler import LoopHandler
from headwater.cluster.store.zookeeper.requests import Request, ZooKeeperRequests
from headwater.cluster.store.zookeeper.session import ZooKeeperSession
from headwater.cluster.store.zookeeper.store import ZooKeeperStore

# Who waits says so soon, and then ever more rarely.
_WARNING_INTERVALS_S: Final = (1.0, 10.0, 20.0)
_WARNING_INTERVAL_MAX_S: Final = 30.0
# Before another session, if one ended before it was of any use.
_PAUSE_S: Final = 0.5
# Between rounds over all servers while none answers; kazoo's own default goes up to a minute.
_RETRY: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_jitter": 0.4, "max_delay": 1.0}

_logger = logging.getLogger(__name__)

T = TypeVar("T")


class Digest(NamedTuple):
    """How a client makes itself known to ZooKeeper."""

    user: str
    password: str


class ZooKeeperConnector:
    """A `StoreConnector`: sessions with the servers of one ensemble."""

    def __init__(
        self,
        address: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int | None = None,
        digest: Digest | None = None,
        set_acl: bool = False,
    ) -> None:
        """`connection_timeout_ms` limits how long the first `connect` waits, and none after it.

        With `set_acl` only who makes itself known by the same digest may use what is created.
        """
        self._hosts, self._root = _parse(address)
        self._session_timeout_s = session_timeout_ms / 1_000
        self._connection_timeout_s = (
            None if connection_timeout_ms is None else connection_timeout_ms / 1_000
        )
        self._digest = digest
        self._acl = CREATOR_ALL_ACL if set_acl and digest is not None else None
        self._has_connected = False
        self._sessions: list[ZooKeeperSession] = []

    async def connect(self) -> ZooKeeperStore:
        """Begin a session; StoreUnreachableError if it is the first and takes too long."""
        limit_s = None if self._has_connected else self._connection_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                return await self._connect()
        except TimeoutError:
            await self._forget_sessions()
            raise StoreUnreachableError(
                f"ZooKeeper at {self._hosts} did not answer within {limit_s:g} s "
                "(zookeeper.connection.timeout.ms)."
            ) from None

    async def close(self) -> None:
        await self._forget_sessions()

    async def _connect(self) -> ZooKeeperStore:
        while True:
            for session in [session for session in self._sessions if session.is_over]:
                await self._warning(session.wait_ended())
                self._sessions.remove(session)
            client, requests, session = self._new_session()
            self._sessions.append(session)
            try:
                await self._warning(session.begin())
                await self._make_root(client, session)
            except SessionExpiredError:
                await asyncio.sleep(_PAUSE_S)
                continue
            self._has_connected = True
            _logger.info("Session %#x with ZooKeeper at %s.", session.session_id, self._hosts)
            return ZooKeeperStore(session, requests)

    def _new_session(self) -> tuple[KazooClient, ZooKeeperRequests, ZooKeeperSession]:
        host_count = self._hosts.count(",") + 1
        loop = asyncio.get_running_loop()
        handler = LoopHandler(loop, host_count, self._session_timeout_s)
        client = KazooClient(
            hosts=self._hosts,
            timeout=self._session_timeout_s,
            handler=handler,
            connection_retry=_RETRY,
            auth_data=[("digest", ":".join(self._digest))] if self._digest else None,
            logger=_QuietLog(logging.getLogger(f"{__name__}.kazoo")),
        )
        requests = ZooKeeperRequests(client, handler, self._root, self._acl)
        session = ZooKeeperSession(client, handler, requests, self._session_timeout_s)
        return client, requests, session

    async def _make_root(self, client: KazooClient, session: ZooKeeperSession) -> None:
        """Make the path in which the cluster lives, where it is missing."""
        requests = ZooKeeperRequests(client, session.handler, "", self._acl)
        if await session.ask(requests.find(self._root or ROOT)) is not None:
            return
        path = ""
        for name in split_path(self._root):
            path += f"/{name}"
            with contextlib.suppress(NodeExistsError):
                await self._make_node(session, requests.create(Create(path, b"")))

    async def _make_node(self, session: ZooKeeperSession, request: Request) -> None:
        while True:
            try:
                await session.ask(request)
                return
            except UncertainWriteError:
                continue

    async def _warning(self, awaitable: Awaitable[T]) -> T:
        """Wait for it, and say now and then that it takes long."""
        waiting = asyncio.ensure_future(awaitable)
        intervals_s = chain(_WARNING_INTERVALS_S, repeat(_WARNING_INTERVAL_MAX_S))
        waited_s = 0.0
        try:
            while True:
                interval_s = next(intervals_s)
                done, _ = await asyncio.wait((waiting,), timeout=interval_s)
                if done:
                    return waiting.result()
                waited_s += interval_s
                _logger.warning(
                    "ZooKeeper at %s has not answered for %d s. It is waited for.",
                    self._hosts,
                    waited_s,
                )
        finally:
            waiting.cancel()

    async def _forget_sessions(self) -> None:
        sessions, self._sessions = self._sessions, []
        await asyncio.gather(*(session.close() for session in sessions))


def _parse(address: str) -> tuple[str, str]:
    """Hosts and root path, the latter without a slash at its end."""
    hosts, _, path = address.partition("/")
    root = "/" + path.strip("/") if path.strip("/") else ""
    try:
        split_path(root or ROOT)
        for _, port in collect_hosts(hosts)[0]:
            if not 0 < port < 65_536:
                raise ValueError("no such port")
    except (InvalidPathError, ValueError) as error:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"{address!r} is not the address of a ZooKeeper: host:port,host:port/path is expected.",
        ) from error
    return hosts, root


class _QuietLog(logging.LoggerAdapter[logging.Logger]):
    """kazoo reports every attempt to connect as a warning; here that is for those who debug."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        shown = min(level, logging.DEBUG) if level <= logging.WARNING else level
        super().log(shown, msg, *args, **kwargs)
