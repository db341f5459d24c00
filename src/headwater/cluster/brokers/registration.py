"""`/brokers/ids/<id>`: the node by which a broker is known to be alive.

It is ephemeral, so it goes with the broker, and only one broker of an id can have it. The number of
the transaction that created it is the broker's epoch: it tells this life of the broker from all
earlier ones.

A broker that was not stopped in order leaves a mark, `/brokers/unclean/<id>`, in the transaction of
its registration. The mark outlives it: so there is no moment in which a controller knows the broker
and not the mark. It says `restarted`, for only the process had ended and the machine kept what it
had been given to write, or `unclean`, for a broker that may have lost what was not yet on its disk.
The controller draws its conclusions (see `failures`) before it removes the mark, also if
there was none when the broker went and came back.

After a crash the node of the last life stays until the store gives that session up. Whoever comes
back sooner waits for it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import BrokerInfo, EndpointInfo
from headwater.cluster.image.rules import ImageFaultError, broker_id_from_text, check_broker
from headwater.cluster.node_documents import UNREADABLE, CorruptNodeError, corrupt, encode
from headwater.cluster.node_locations import (
    BROKER_IDS,
    UNCLEAN_BROKERS,
    broker_path,
    unclean_broker_path,
)
from headwater.cluster.store.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    UncertainWriteError,
)
from headwater.cluster.store.metadata_store import (
    Create,
    MetadataStore,
    Node,
    Operation,
    Set,
    Watch,
    WatchEvent,
)

_logger = logging.getLogger(__name__)

#: What a mark says.
RESTARTED: Final = b"restarted"
UNCLEAN: Final = b"unclean"

_ENDPOINT: Final = re.compile(r"([^:/]+)://(?:\[([^\]]*)\]|([^:]*)):([0-9]+)", re.ASCII)


async def register_broker(
    store: MetadataStore,
    broker: BrokerInfo,
    now_ms: int,
    *,
    is_unclean: bool = False,
    is_restarted: bool = False,
    wait_s: float = 0.0,
) -> BrokerInfo:
    """Make the broker known, and return it with its epoch.

    `is_restarted`: its last life was not ended in order; `is_unclean`: and it may lack records.
    A node of that id that another session holds is waited for; KafkaError
    DUPLICATE_BROKER_REGISTRATION if it is still there after `wait_s` seconds.
    """
    path = broker_path(broker.broker_id)
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + wait_s
    mark = UNCLEAN if is_unclean else RESTARTED if is_restarted else None
    while not await _try_to_register(store, broker, now_ms, mark):
        present = await _wait_until_gone(store, path, deadline_s - loop.time())
        if present is None:
            continue
        if present.ephemeral_owner == store.session_id:
            # A registration that was thought lost has arrived.
            return broker._replace(broker_epoch=present.creation_id)
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker with the id {broker.broker_id} is alive in this cluster.",
        )
    node = await store.get(path)
    return broker._replace(broker_epoch=node.creation_id)


async def _try_to_register(
    store: MetadataStore, broker: BrokerInfo, now_ms: int, mark: bytes | None
) -> bool:
    """Whether it was done; if not, there may be a node of that id."""
    path = unclean_broker_path(broker.broker_id)
    operations: list[Operation] = [
        Create(broker_path(broker.broker_id), _encode(broker, now_ms), ephemeral=True)
    ]
    while True:
        marking = [] if mark is None else [await _marking(store, path, mark)]
        try:
            await store.multi(operations + marking)
            return True
        except (NodeExistsError, NoNodeError, BadVersionError) as error:
            if error.path != path:
                if isinstance(error, NodeExistsError):
                    return False
                raise
        except UncertainWriteError:
            return False


async def _marking(store: MetadataStore, path: str, mark: bytes) -> Operation:
    """What leaves the mark, or leaves it anew.

    That of an earlier life may be there until the controller comes to remove it. What that life
    lacked this one lacks too; and the new version keeps the controller from removing for this life
    what it worked off for that one.
    """
    present = await store.exists(path)
    if present is None:
        return Create(path, mark)
    return Set(path, mark if present.data == RESTARTED else UNCLEAN, present.version)


async def _wait_until_gone(store: MetadataStore, path: str, limit_s: float) -> Node | None:
    """Wait for the end of another session's node; what is there then, or own."""
    gone = asyncio.Event()
    while True:

        def watch(event: WatchEvent) -> None:
            gone.set()

        gone.clear()
        present = await store.exists(path, watch)
        if present is None or present.ephemeral_owner == store.session_id or limit_s <= 0:
            return present
        try:
            async with asyncio.timeout(limit_s):
                await gone.wait()
        except TimeoutError:
            limit_s = 0.0


async def load_brokers(store: MetadataStore, watch: Watch | None = None) -> dict[int, BrokerInfo]:
    """All live brokers whose nodes can be read; the watch is called when one comes or goes."""
    names = await store.children(BROKER_IDS, watch)
    paths = [f"{BROKER_IDS}/{name}" for name in names]
    brokers: dict[int, BrokerInfo] = {}
    for name, path, node in zip(names, paths, await store.get_many(paths), strict=True):
        if node is not None:
            try:
                broker = _decode(path, name, node)
            except CorruptNodeError as error:
                _logger.error("%s It is left out.", error)
                continue
            brokers[broker.broker_id] = broker
    return dict(sorted(brokers.items()))


class ReturnMark(NamedTuple):
    """That a broker was not stopped in order before it came back."""

    #: Whether it may lack records.
    is_unclean: bool
    #: Grows with every life that leaves the mark anew.
    version: int
    creation_id: int


class PresentBrokers(NamedTuple):
    """The live brokers, and all marks, as they were at one moment."""

    brokers: dict[int, BrokerInfo]
    marks: dict[int, ReturnMark]


async def load_present_brokers(store: MetadataStore, watch: Watch | None = None) -> PresentBrokers:
    """Who is there, with the marks that belong to it; the watch is that of `load_brokers`.

    Between two reads a broker may come back. So the marks are read before and after: if they are
    the same, they are those of the moment in which the brokers were read.
    """
    marks = await load_return_marks(store)
    while True:
        brokers = await load_brokers(store, watch)
        before, marks = marks, await load_return_marks(store)
        if marks == before:
            return PresentBrokers(brokers, marks)


async def load_return_marks(store: MetadataStore) -> dict[int, ReturnMark]:
    names = await store.children(UNCLEAN_BROKERS)
    paths = [f"{UNCLEAN_BROKERS}/{name}" for name in names]
    marks: dict[int, ReturnMark] = {}
    for name, path, node in zip(names, paths, await store.get_many(paths), strict=True):
        if node is not None:
            try:
                broker_id = broker_id_from_text(name)
            except ImageFaultError as error:
                _logger.error("%s It is left out.", corrupt(path, error))
                continue
            # A mark that says something else is taken for the worse.
            is_unclean = node.data != RESTARTED
            marks[broker_id] = ReturnMark(is_unclean, node.version, node.creation_id)
    return marks


def _encode(broker: BrokerInfo, now_ms: int) -> bytes:
    host, port = broker.endpoints[0][1:] if broker.endpoints else ("", -1)
    document = {
        "version": 5,
        "host": host,
        "port": port,
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "endpoints": [_endpoint_text(endpoint) for endpoint in broker.endpoints],
        "listener_security_protocol_map": {
            endpoint.listener_name: "PLAINTEXT" for endpoint in broker.endpoints
        },
        "features": {},
    }
    if broker.rack is not None:
        document["rack"] = broker.rack
    if broker.log_dirs:
        document["log_dirs"] = list(broker.log_dirs)
    if broker.cordoned_log_dirs:
        document["cordoned_log_dirs"] = list(broker.cordoned_log_dirs)
    return encode(document)


def _decode(path: str, name: str, node: Node) -> BrokerInfo:
    try:
        broker_id = broker_id_from_text(name)
        document = json.loads(node.data)
        endpoints = tuple(_endpoint(text) for text in document["endpoints"])
        broker = BrokerInfo(
            broker_id,
            endpoints,
            document.get("rack"),
            node.creation_id,
            _paths(document, "log_dirs"),
            _paths(document, "cordoned_log_dirs"),
        )
        check_broker(broker)
        return broker
    except ImageFaultError as error:
        raise corrupt(path, error) from error
    except UNREADABLE as error:
        raise CorruptNodeError(path, "it is not the registration of a broker") from error


def _paths(document: dict[str, object], name: str) -> tuple[str, ...]:
    """A list of a registration, which older brokers do not have; its items are checked later."""
    paths = document.get(name, [])
    if not isinstance(paths, list):
        raise ValueError(f"{name} is {paths!r}, and not a list")
    return tuple(paths)


def _endpoint_text(endpoint: EndpointInfo) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener_name}://{host}:{endpoint.port}"


def _endpoint(text: str) -> EndpointInfo:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an endpoint")
    return EndpointInfo(match[1], match[2] or match[3] or "", int(match[4]))
