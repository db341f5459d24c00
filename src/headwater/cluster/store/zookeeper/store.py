"""The metadata store on ZooKeeper: one session, as everybody else in the broker sees it.

What each operation means is ZooKeeper's own semantics, which the interface has. How requests are
ordered, repeated and given up is told in `session`, how they are put to kazoo in
`requests`.

A request must fit into one packet: ZooKeeper closes the connection of a client that sends more
than its `jute.maxbuffer`, 1 MiB unless it was set otherwise. A change that large is reported as one
whose fate is unknown, for that is all that can be seen of it from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, cast

from headwater.cluster.store.errors import SessionExpiredError
from headwater.cluster.store.metadata_store import (
    ANY_VERSION,
    Create,
    Delete,
    Node,
    Operation,
    Result,
    Set,
    Watch,
)
from headwater.cluster.store.node_paths import ROOT
from headwater.cluster.store.zookeeper.requests import ZooKeeperRequests, check_not_root
from headwater.cluster.store.zookeeper.session import ZooKeeperSession

#: Enough to make the cost of a request negligible, few enough for a packet of ordinary nodes.
READS_PER_REQUEST: Final = 100


class ZooKeeperStore:
    """A `MetadataStore`; `ZooKeeperConnector.connect` makes it."""

    def __init__(self, session: ZooKeeperSession, requests: ZooKeeperRequests) -> None:
        self._session = session
        self._requests = requests

    @property
    def session_id(self) -> int:
        return self._session.session_id

    @property
    def timeout_s(self) -> float | None:
        return self._session.timeout_s

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now; operations wait for one."""
        return self._session.is_connected

    @property
    def credentials(self) -> tuple[int, bytes]:
        """What another client needs to go on with this session."""
        return self._session.credentials

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        if not sequence:
            check_not_root(path)
        request = self._requests.create(Create(path, data, ephemeral, sequence))
        return cast(str, await self._session.ask(request))

    async def get(self, path: str, watch: Watch | None = None) -> Node:
        return cast(Node, await self._session.ask(self._requests.get(path, watch)))

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        if self._session.is_over:
            raise SessionExpiredError(paths[0] if paths else ROOT)
        groups = [paths[i : i + READS_PER_REQUEST] for i in range(0, len(paths), READS_PER_REQUEST)]
        requests = [self._requests.find_many(group) for group in groups]
        found = await asyncio.gather(*map(self._session.ask, requests))
        return [node for nodes in found for node in nodes]

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return cast(int, await self._session.ask(self._requests.set(Set(path, data, version))))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        check_not_root(path)
        await self._session.ask(self._requests.delete(Delete(path, version)))

    async def exists(self, path: str, watch: Watch | None = None) -> Node | None:
        find = self._requests.find(path)
        if watch is None:
            return cast(Node | None, await self._session.ask(find))
        # ZooKeeper has no request that leaves such a watch and brings the data too. Both are asked
        # at once; should the node change in between, the watch is called before the answer is here.
        watched = self._session.ask(self._requests.watch_existence(path, watch))
        _, node = await asyncio.gather(watched, self._session.ask(find))
        return cast(Node | None, node)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return cast(list[str], await self._session.ask(self._requests.children(path, watch)))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """As the interface says. All operations together must fit into one packet, see above."""
        if self._session.is_over:
            raise SessionExpiredError(operations[0].path if operations else ROOT)
        if not operations:
            return []
        for operation in operations:
            if isinstance(operation, Delete) or (
                isinstance(operation, Create) and not operation.sequence
            ):
                check_not_root(operation.path)
        answer = await self._session.ask(self._requests.multi(operations))
        return cast(list[Result], answer)

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._session.on_expired(callback)

    async def close(self) -> None:
        await self._session.close()
