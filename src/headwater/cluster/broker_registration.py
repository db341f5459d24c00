"""`/brokers/ids/<id>`: the node by which a broker is known to be alive.

It is ephemeral, so it goes with the broker, and only one broker of an id can have it. The number of
the transaction that created it is the broker's epoch: it tells this life of the broker from all
earlier ones.
"""

from __future__ import annotations

import json
import re
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image import BrokerInfo, EndpointInfo
from headwater.cluster.node_documents import CorruptNodeError, encode
from headwater.cluster.node_locations import BROKER_IDS, broker_path
from headwater.cluster.store.errors import NodeExistsError
from headwater.cluster.store.metadata_store import MetadataStore, Node

_ENDPOINT: Final = re.compile(r"([^:/]+)://(?:\[([^\]]*)\]|([^:]*)):([0-9]+)", re.ASCII)


async def register_broker(store: MetadataStore, broker: BrokerInfo, now_ms: int) -> BrokerInfo:
    """Make the broker known, and return it with its epoch."""
    path = broker_path(broker.broker_id)
    try:
        await store.create(path, _encode(broker, now_ms), ephemeral=True)
    except NodeExistsError as error:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Another broker with the id {broker.broker_id} is alive in this cluster.",
        ) from error
    node = await store.get(path)
    return broker._replace(broker_epoch=node.creation_id)


async def load_brokers(store: MetadataStore) -> dict[int, BrokerInfo]:
    """All live brokers."""
    names = await store.children(BROKER_IDS)
    nodes = await store.get_many([f"{BROKER_IDS}/{name}" for name in names])
    brokers = [
        _decode(f"{BROKER_IDS}/{name}", int(name), node)
        for name, node in zip(names, nodes, strict=True)
        if node is not None
    ]
    return {broker.broker_id: broker for broker in sorted(brokers)}


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
