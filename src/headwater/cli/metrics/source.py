"""Where metrics come from: the /metrics page of each broker, at an address that a broker tells."""

from __future__ import annotations

import http.client
from collections.abc import Collection
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin import AdminOperations, ConfigResource, ResourceType
from headwater.client.connection.cluster_connection import ClusterConnection

SETTING: Final = "metrics.listen"
PATH: Final = "/metrics"
TIMEOUT_S: Final = 10.0
_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::", "[::]"})


class NoMetricsError(KafkaError):
    """Metrics cannot be had, for the reason in the message."""

    code = ErrorCode.NETWORK_EXCEPTION


class MetricsAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> MetricsAddress:
    """`host:port`, also with http:// in front and a path behind."""
    bare = text.removeprefix("http://").split("/", 1)[0]
    host, colon, port = bare.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) < 65536:
        raise NoMetricsError(
            f"{text!r} is not the address of metrics: it should be like 'host:9404'."
        )
    return MetricsAddress(host.strip("[]") or "127.0.0.1", int(port))


def fetch_page(address: MetricsAddress) -> str:
    """The text of a broker's /metrics."""
    connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_S)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        body = answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NoMetricsError(f"No metrics come from {address}: {reason}.") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise NoMetricsError(
            f"No metrics come from {address}: it answers {answer.status} {answer.reason}."
        )
    return body


async def find_addresses(
    connection: ClusterConnection, broker_ids: Collection[int] | None = None
) -> dict[int, MetricsAddress | None]:
    """For each broker the address that its settings tell; None where it serves no metrics."""
    brokers = connection.metadata.brokers
    if broker_ids is not None:
        brokers = {key: node for key, node in brokers.items() if key in broker_ids}
    resources = {
        broker_id: ConfigResource(ResourceType.BROKER, str(broker_id)) for broker_id in brokers
    }
    outcomes = await AdminOperations(connection).describe_configs(
        list(resources.values()), names=[SETTING]
    )
    addresses: dict[int, MetricsAddress | None] = {}
    for broker_id, resource in resources.items():
        entries = outcomes[resource]
        if isinstance(entries, KafkaError):
            raise entries
        text = next((entry.value for entry in entries if entry.name == SETTING), None)
        address = _reachable(text, brokers[broker_id].address.host) if text else None
        if address is not None and address.port == 0:
            raise NoMetricsError(
                f"Broker {broker_id} shows its metrics on a free port, which its output tells: "
                "name it with --metrics-address."
            )
        addresses[broker_id] = address
    return addresses


def _reachable(text: str, broker_host: str) -> MetricsAddress:
    """Where one listens on every interface, it is reached where its broker is."""
    host, _, port = text.rpartition(":")
    return parse_address(f"{broker_host if host in _EVERYWHERE else host}:{port}")
