"""The addresses at which a client is told to find the brokers.

A client learns them from Metadata and dials those, not the one that it began with; and it asks
whichever broker is at hand, again and again. So all brokers must tell it the same of each of them,
or it takes one broker for another that has moved, and hangs up. They do, because all go by what is
registered: `advertised.listeners`, or else the address of the listener, for the listener of the
client's name.

A listener on every address of its machine registers the machine's name, as the brokers of a cluster
are on different machines. Without ZooKeeper they are in one process, and so at one machine, however
it is called: such a listener is registered as it is, and a client is told the address at which it
came to that machine, for all brokers alike. That has been shown to work.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headwater.broker.context import RequestContext
from headwater.cluster.image.image import BrokerInfo, EndpointInfo
from headwater.net.endpoint import Endpoint, is_every_address

_LOOPBACK: Final = "127.0.0.1"


class Address(NamedTuple):
    host: str
    port: int


class ClientSide(NamedTuple):
    """What the answer depends on, beside what is registered: how the client came."""

    listener_name: str
    #: The host of the address at which its connection arrived.
    host: str

    def address_of(self, broker: BrokerInfo) -> Address | None:
        """Where to find a broker; None if it has no listener of the client's kind."""
        named = [each for each in broker.endpoints if each.listener_name == self.listener_name]
        if not named:
            return None
        # One name may stand for two addresses of a machine; the client has one of them.
        _, host, port = next((each for each in named if each.host == self.host), named[0])
        return Address(self._reached(host) if is_every_address(host) else host, port)

    def _reached(self, listening: str) -> str:
        """This client's host of a listener on every address.

        `localhost` is one address today and the other one tomorrow, where there are two.
        """
        return _LOOPBACK if ":" not in listening and _is_loopback(self.host) else self.host


def client_side(context: RequestContext) -> ClientSide:
    """How the client of a request reached this broker."""
    connection = context.connection
    return ClientSide(connection.listener_name, connection.local[0])


def registered_endpoints(
    advertised: Mapping[str, Endpoint], listeners: Iterable[Endpoint], machine_name: str | None
) -> tuple[EndpointInfo, ...]:
    """What brokers and clients are told: where this broker is found.

    `advertised` is what its settings say, by the name of the listener. `machine_name` is for a
    listener on every address, where brokers may be on different machines; None says that all of
    them are on this one.
    """
    told = (advertised.get(each.listener_name, each) for each in listeners)
    return tuple(
        EndpointInfo(name, _registered_host(host, machine_name), port) for name, host, port in told
    )


def _registered_host(listening: str, machine_name: str | None) -> str:
    if machine_name is not None and is_every_address(listening):
        return machine_name
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
