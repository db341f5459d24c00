"""`/brokers/ids/<id>`: the node by which a broker is known to be alive.

It is ephemeral, so it goes with the broker, and only one broker of an id can have it. The number of
the transaction that created it is the broker's epoch: it tells this life of the broker from all
earlier ones.

A broker that was not stopped in order leaves a mark, `/brokers/unclean/<id>`, in the transaction of
its registration. The mark outlives it: so there is no moment in which a controller knows the broker
and not the mark. It says `restarted`, for only the process had ended and the machine kept what it
had been given to write, or `unclean`, for a broker that may have lost what was not yet on its disk.
The controller draws its conclusions (see `broker_failures`) before it removes the mark, also if
there was none when the broker went and came back.

After a crash the node of the last life stays until the store gives that session up. Whoever comes
back sooner waits for it.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image import BrokerInfo, EndpointInfo
from headwater.cluster.node_documents import CorruptNodeError, encode
from headwater.cluster.node_locations import (
    BROKER_IDS,
    UNCLEAN_BROKERS,
    broker_path,
    unclean_broker_path,
)
from headwater.cluster.store.errors import NodeExistsError, NoNodeError, UncertainWriteError
from headwater.cluster.store.metadata_store import (
    Check,
    Create,
    MetadataStore,
    Node,
    Operation,
    Set,
    Watch,
    WatchEvent,
)

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
    claim = Create(broker_path(broker.broker_id), _encode(broker, now_ms), ephemeral=True)
    # The mark of an earlier life may be there, until the controller comes to remove it. What that
    # one lacked, this one lacks too.
    marks: list[Operation] = [
        Create(path, mark or b""),
        Set(path, UNCLEAN) if mark == UNCLEAN else Check(path),
    ]
    while True:
        try:
            await store.multi([claim] if mark is None else [claim, marks[0]])
            return True
        except (NodeExistsError, NoNodeError) as error:
            if error.path != path:
                if isinstance(error, NoNodeError):
                    raise
                return False
            marks.reverse()
        except UncertainWriteError:
            return False


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
    """All live brokers; the watch is called when one comes or goes."""
    names = await store.children(BROKER_IDS, watch)
    nodes = await store.get_many([f"{BROKER_IDS}/{name}" for name in names])
    brokers = [
        _decode(f"{BROKER_IDS}/{name}", int(name), node)
        for name, node in zip(names, nodes, strict=True)
        if node is not None
    ]
    return {broker.broker_id: broker for broker in sorted(brokers)}


class ReturnMarks(NamedTuple):
    """The brokers that were not stopped in order before they came back."""

    restarted: frozenset[int]
    #: Those of them that may lack records.
    unclean: frozenset[int]


async def load_return_marks(store: MetadataStore) -> ReturnMarks:
    """The brokers that are marked; those that are registered are to be read before."""
    names = await store.children(UNCLEAN_BROKERS)
    nodes = await store.get_many([f"{UNCLEAN_BROKERS}/{name}" for name in names])
    # A mark that says something else is taken for the worse.
    marks = {
        int(name): node.data == RESTARTED
        for name, node in zip(names, nodes, strict=True)
        if node is not None
    }
    unclean = frozenset(broker_id for broker_id, kept_all in marks.items() if not kept_all)
    return ReturnMarks(frozenset(marks), unclean)


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
    return encode(document)


def _decode(path: str, broker_id: int, node: Node) -> BrokerInfo:
    try:
        document = json.loads(node.data)
        endpoints = tuple(_endpoint(text) for text in document["endpoints"])
        return BrokerInfo(broker_id, endpoints, document.get("rack"), node.creation_id)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptNodeError(path, "it is not the registration of a broker") from error


def _endpoint_text(endpoint: EndpointInfo) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener_name}://{host}:{endpoint.port}"


def _endpoint(text: str) -> EndpointInfo:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an endpoint")
    return EndpointInfo(match[1], match[2] or match[3] or "", int(match[4]))
