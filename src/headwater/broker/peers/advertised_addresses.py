"""The addresses at which a client is told to find the brokers.

A client learns them from Metadata and dials those, not the one that it began with. For the broker
that answers, that is by default the address that the client dialled: it has been shown to work, on
whichever interface and port it was. Where it would not work for others (a broker behind a proxy, in
a container) `advertised.listeners` names the one to tell, for each listener. Of other brokers a
client is told what they registered for the listener of the same name.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from headwater.base.settings import SettingError
from headwater.broker.context import RequestContext
from headwater.cluster.image.image import BrokerInfo, EndpointInfo
from headwater.net.endpoint import Endpoint, parse_endpoints


class Address(NamedTuple):
    host: str
    port: int


class ClientSide(NamedTuple):
    """What the answer depends on: the broker that gives it, and how the client reached it."""

    node_id: int
    #: The value of `advertised.listeners`.
    advertised: str | None
    listener_name: str
    #: The address that the client dialled.
    local: Address

    def address_of(self, broker: BrokerInfo) -> Address | None:
        """Where to find a broker; None if it has no listener of the client's kind."""
        if broker.broker_id == self.node_id:
            told = _parse(self.advertised or "").get(self.listener_name)
            return self.local if told is None else told
        for listener_name, host, port in broker.endpoints:
            if listener_name == self.listener_name:
                return Address(host, port)
        return None


def client_side(context: RequestContext) -> ClientSide:
    """How the client of a request reached this broker."""
    return ClientSide(
        node_id=context.broker.node_id,
        advertised=context.broker.settings.optional_text("advertised.listeners"),
        listener_name=context.connection.listener_name,
        local=Address(*context.connection.local),
    )


def check_advertised(advertised: str | None, listeners: Iterable[Endpoint]) -> None:
    """Raise `SettingError` if `advertised.listeners` does not fit the listeners there are."""
    names = [endpoint.listener_name for endpoint in listeners]
    for name, address in _parse(advertised or "").items():
        if name not in names:
            raise SettingError(
                f"advertised.listeners names {name}, but the listeners are {', '.join(names)}."
            )
        if _is_wildcard(address.host):
            raise SettingError(
                f"advertised.listeners cannot tell clients to dial {address.host or 'no host'!r}, "
                "which stands for every address of the broker."
            )
        if address.port == 0:
            raise SettingError(f"advertised.listeners tells no port for {name}.")


def registered_endpoints(
    advertised: str | None, listeners: Iterable[Endpoint], host_name: str
) -> tuple[EndpointInfo, ...]:
    """What the other brokers, and their clients, are told: where this broker listens.

    `host_name` stands for the machine where a listener is on all of its addresses.
    """
    told = _parse(advertised or "")
    return tuple(
        EndpointInfo(name, *told.get(name, (host_name if _is_wildcard(host) else host, port)))
        for name, host, port in listeners
    )


@lru_cache(maxsize=16)
def _parse(advertised: str) -> Mapping[str, Address]:
    """The setting by listener name. It is read for each answer, so the last ones are kept."""
    try:
        endpoints = parse_endpoints(advertised) if advertised.strip() else []
    except ValueError as error:
        raise SettingError(f"advertised.listeners: {error}") from error
    by_name: dict[str, Address] = {}
    for endpoint in endpoints:
        if endpoint.listener_name in by_name:
            raise SettingError(f"advertised.listeners names {endpoint.listener_name} twice.")
        by_name[endpoint.listener_name] = Address(endpoint.host, endpoint.port)
    return MappingProxyType(by_name)


def _is_wildcard(host: str) -> bool:
    try:
        return host == "" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
