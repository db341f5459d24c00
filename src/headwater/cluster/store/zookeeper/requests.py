"""The operations of the metadata store as requests that kazoo sends.

Paths are put below the root of the cluster (the chroot), answers and events are taken out of it.
A read that leaves a watch enters it into `watches` when its answer comes; kazoo is given one and
the same callable for all of them, which finds in `watches` whom an event concerns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol import serialization
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE

from headwater.base.checks import check
from headwater.cluster.store.errors import InvalidPathError
from headwater.cluster.store.metadata_store import (
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Result,
    Set,
    Watch,
    WatchEvent,
    WatchKind,
)
from headwater.cluster.store.node_paths import ROOT, split_path
from headwater.cluster.store.zookeeper.errors import is_error, is_reason, store_error
from headwater.cluster.store.zookeeper.handler import LoopHandler, LoopResult
from headwater.cluster.store.zookeeper.multi_read import MultiRead
from headwater.cluster.store.zookeeper.watches import ZooKeeperWatches

_EVENT_KINDS: Final = {
    EventType.CREATED: WatchKind.CREATED,
    EventType.CHANGED: WatchKind.CHANGED,
    EventType.DELETED: WatchKind.DELETED,
    EventType.CHILD: WatchKind.CHILDREN,
}
_EPHEMERAL: Final = 1
_SEQUENCE: Final = 2


class Request(NamedTuple):
    """What to ask, and what to make of the answer."""

    #: The node that it is about, for errors.
    path: str
    #: Calls kazoo, which answers in the result that is returned.
    start: Callable[[], LoopResult]
    #: Called with the result as soon as it is there; gives the caller's answer, or raises.
    convert: Callable[[LoopResult], Any]
    is_write: bool = False


class ZooKeeperRequests:
    """Makes requests for one client, whose session's watches it keeps."""

    def __init__(
        self, client: KazooClient, handler: LoopHandler, root: str, acl: Sequence[Any] | None
    ) -> None:
        """`root` is the path, without a slash at its end, that stands in front of all others;
        `acl` says who may use new nodes, None everybody."""
        self.watches = ZooKeeperWatches()
        self._client = client
        self._handler = handler
        self._root = root
        self._acl = list(OPEN_ACL_UNSAFE if acl is None else acl)
        self._loop = asyncio.get_running_loop()

    # -- reads ------------------------------------------------------------------------------------

    def get(self, path: str, watch: Watch | None = None) -> Request:
        """The node, an error if there is none."""

        def convert(result: LoopResult) -> Node:
            data, stat = result.get()
            if watch is not None:
                self.watches.leave_on_node(path, stat.mzxid, watch)
            return _node(data, stat)

        return Request(path, self._getting(path, watch), convert)

    def find(self, path: str) -> Request:
        """The node, None if there is none."""

        def convert(result: LoopResult) -> Node | None:
            if isinstance(result.exception, NoNodeError):
                return None
            return _node(*result.get())

        return Request(path, self._getting(path, None), convert)

    def find_many(self, paths: Sequence[str]) -> Request:
        """The nodes in that order, None for those that are not there, in one request."""
        question = MultiRead([self._full(path) for path in paths])

        def start() -> LoopResult:
            result = LoopResult(self._handler)
            # kazoo has no public way to send a request that it does not know.
            self._client._call(question, result)
            return result

        def convert(result: LoopResult) -> list[Node | None]:
            nodes: list[Node | None] = []
            for path, found in zip(paths, result.get(), strict=True):
                if not isinstance(found, Exception):
                    nodes.append(_node(*found))
                elif isinstance(found, NoNodeError):
                    nodes.append(None)
                else:
                    raise store_error(found, path)
            return nodes

        return Request(paths[0], start, convert)

    def watch_existence(self, path: str, watch: Watch) -> Request:
        """Leave a watch on a node that need not be there; answers nothing."""

        def convert(result: LoopResult) -> None:
            stat = result.get()
            self.watches.leave_on_node(path, None if stat is None else stat.mzxid, watch)

        return Request(path, self._looking(path), convert)

    def children(self, path: str, watch: Watch | None = None) -> Request:
        """The names below a node, sorted."""

        def convert(result: LoopResult) -> list[str]:
            names, stat = result.get()
            if watch is not None:
                self.watches.leave_on_children(path, stat.pzxid, watch)
            return sorted(names)

        return Request(path, self._listing(path, watch), convert)

    # -- changes ----------------------------------------------------------------------------------

    def create(self, operation: Create) -> Request:
        start = partial(
            self._client.create_async,
            self._full(operation.path, is_sequence=operation.sequence),
            operation.data,
            acl=self._acl,
            ephemeral=operation.ephemeral,
            sequence=operation.sequence,
        )
        return Request(operation.path, start, lambda result: self._own(result.get()), True)

    def set(self, operation: Set) -> Request:
        full = self._full(operation.path)
        start = partial(self._client.set_async, full, operation.data, operation.version)
        return Request(operation.path, start, lambda result: result.get().version, True)

    def delete(self, operation: Delete) -> Request:
        full = self._full(operation.path)
        start = partial(self._client.delete_async, full, operation.version)
        return Request(operation.path, start, _nothing, True)

    def multi(self, operations: Sequence[Operation]) -> Request:
        transaction = self._client.transaction()
        # Its methods take the slash from the end of a path, which a sequence number may need.
        transaction.operations.extend(self._part(operation) for operation in operations)

        def convert(result: LoopResult) -> list[Result]:
            answers = result.get()
            for operation, answer in zip(operations, answers, strict=True):
                if is_reason(answer):
                    raise store_error(answer, operation.path)
            check(not any(map(is_error, answers)), "a refused transaction must tell the reason")
            return [self._part_result(answer) for answer in answers]

        return Request(operations[0].path, transaction.commit_async, convert, True)

    # -- watches ----------------------------------------------------------------------------------

    def restoring(self) -> list[Request]:
        """Reads that leave all watches again, and call those that missed something."""

        def node_again(path: str, result: LoopResult) -> None:
            stat = result.get()
            self._call_missed(
                self.watches.missed_on_node(path, None if stat is None else stat.mzxid)
            )

        def children_again(path: str, result: LoopResult) -> None:
            is_gone = isinstance(result.exception, NoNodeError)
            now = None if is_gone else result.get()[1].pzxid
            self._call_missed(self.watches.missed_on_children(path, now))

        return [
            Request(path, self._looking(path), partial(node_again, path))
            for path in self.watches.watched_nodes()
        ] + [
            Request(path, self._listing(path, self._on_event), partial(children_again, path))
            for path in self.watches.watched_children()
        ]

    def _on_event(self, event: WatchedEvent) -> None:
        """The watch that is left with kazoo, for all paths."""
        kind = _EVENT_KINDS.get(event.type)
        # kazoo calls all its watches when a connection breaks, with an event of no kind.
        if kind is not None:
            self._call_watches(WatchEvent(kind, self._own(event.path)))

    def _call_missed(self, event: WatchEvent | None) -> None:
        if event is not None:
            self._call_watches(event)

    def _call_watches(self, event: WatchEvent) -> None:
        for watch in self.watches.take(event):
            # Behind the answer that left the watch, which may be on its way to who asked.
            self._loop.call_soon(watch, event)

    # -- paths and parts --------------------------------------------------------------------------

    def _getting(self, path: str, watch: Watch | None) -> Callable[[], LoopResult]:
        own = None if watch is None else self._on_event
        return partial(self._client.get_async, self._full(path), own)

    def _looking(self, path: str) -> Callable[[], LoopResult]:
        return partial(self._client.exists_async, self._full(path), self._on_event)

    def _listing(self, path: str, watch: object) -> Callable[[], LoopResult]:
        own = None if watch is None else self._on_event
        full = self._full(path)
        return partial(self._client.get_children_async, full, own, include_data=True)

    def _full(self, path: str, *, is_sequence: bool = False) -> str:
        """The path as the servers know it; raises InvalidPathError."""
        # A sequential node may be named by its number alone: its path then ends in a slash.
        split_path(path + "0" if is_sequence else path)
        if path == ROOT and not is_sequence:
            return self._root or ROOT
        return self._root + path

    def _own(self, full: str) -> str:
        return full[len(self._root) :] or ROOT

    def _part(self, operation: Operation) -> object:
        """An operation as a part of a transaction."""
        path = operation.path
        match operation:
            case Create(_, data, ephemeral, sequence):
                flags = _EPHEMERAL * ephemeral | _SEQUENCE * sequence
                full = self._full(path, is_sequence=sequence)
                return serialization.Create(full, data, self._acl, flags)
            case Set(_, data, version):
                return serialization.SetData(self._full(path), data, version)
            case Delete(_, version):
                return serialization.Delete(self._full(path), version)
            case Check(_, version):
                return serialization.CheckVersion(self._full(path), version)

    def _part_result(self, answer: object) -> Result:
        if isinstance(answer, str):
            return self._own(answer)
        return int(answer.version) if isinstance(answer, ZnodeStat) else None


def _node(data: bytes | None, stat: ZnodeStat) -> Node:
    return Node(data or b"", stat.version, stat.ctime, stat.mtime, stat.ephemeralOwner, stat.czxid)


def _nothing(result: LoopResult) -> None:
    result.get()


def check_not_root(path: str) -> None:
    """The root never comes or goes; raises InvalidPathError."""
    if path == ROOT:
        raise InvalidPathError(path)
