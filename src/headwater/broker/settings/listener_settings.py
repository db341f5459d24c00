"""Where a broker listens for clients, and where it tells them to come, as its settings say.

Files of Kafka's name listeners of controllers too. Here a controller has no address of its own, so
those are left out wherever they are named.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from headwater.base.setting import refuse
from headwater.base.settings import SettingError, SettingValues
from headwater.net.endpoint import Endpoint, is_every_address, parse_endpoints

_LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_SERVED_PROTOCOL: Final = "PLAINTEXT"

T = TypeVar("T")


def client_endpoints(values: SettingValues) -> list[Endpoint]:
    """Where clients are listened for; a protocol that is not served is an error."""
    protocols = _protocol_map(values.text("listener.security.protocol.map"))
    endpoints = _without_controllers(values, _LISTENERS, values.text(_LISTENERS))
    if not endpoints:
        raise SettingError("The setting listeners has no address where clients are listened for.")
    faults: list[str] = []
    for name in dict.fromkeys(endpoint.listener_name for endpoint in endpoints):
        protocol = protocols.get(name)
        if protocol is None:
            faults.append(
                f"The setting listeners names {name}, for which listener.security.protocol.map "
                "has no protocol."
            )
        elif protocol != _SERVED_PROTOCOL:
            faults.append(
                f"The listener {name} is to speak {protocol}, and this release serves "
                f"{_SERVED_PROTOCOL} only."
            )
    refuse(faults)
    return endpoints


def check_listener_names(values: SettingValues) -> None:
    """Refuse two listeners of one name in a cluster; raises `SettingError`.

    What is told of a listener goes by its name, so nobody would be told of the second. Brokers in
    one process can tell them apart: it is the same two addresses for all of them.
    """
    if not values.optional_text("zookeeper.connect"):
        return
    try:
        names = [each.listener_name for each in client_endpoints(values)]
    except SettingError:
        return  # It has been told.
    refuse(
        [
            f"The setting listeners has {name} twice, and the listeners of a broker in a cluster "
            "need a name each: NAME://host:port."
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
    )


def advertised_endpoints(values: SettingValues) -> dict[str, Endpoint]:
    """`advertised.listeners` by name; an address that no client can dial is an error."""
    text = values.optional_text(_ADVERTISED) or ""
    if not text.strip():
        return {}
    listening = _listener_names(values)
    advertised: dict[str, Endpoint] = {}
    faults: list[str] = []
    for endpoint in _without_controllers(values, _ADVERTISED, text):
        name, host, port = endpoint
        if name in advertised:
            faults.append(f"advertised.listeners names {name} twice.")
        advertised[name] = endpoint
        if listening and name not in listening:
            faults.append(
                f"advertised.listeners names {name}, but the listeners are {', '.join(listening)}."
            )
        if is_every_address(host):
            faults.append(
                f"advertised.listeners cannot tell clients to dial {host or 'no host'!r}, "
                "which stands for every address of the broker."
            )
        if port == 0:
            faults.append(f"advertised.listeners tells no port for {name}.")
    refuse(faults)
    return advertised


def parsed(name: str, parse: Callable[[str], T], text: str) -> T:
    """What a setting's text stands for, where `parse` says with a ValueError what is wrong."""
    try:
        return parse(text)
    except ValueError as error:
        raise SettingError(f"The setting {name} is not right: {error}") from None


def _listener_names(values: SettingValues) -> list[str]:
    """What can be advertised; nothing where listeners cannot be read, which is told elsewhere."""
    try:
        endpoints = _without_controllers(values, _LISTENERS, values.text(_LISTENERS))
    except SettingError:
        return []
    return list(dict.fromkeys(endpoint.listener_name for endpoint in endpoints))


def _without_controllers(values: SettingValues, name: str, text: str) -> list[Endpoint]:
    controllers = _items((values.optional_text("controller.listener.names") or "").upper())
    endpoints = parsed(name, parse_endpoints, text)
    return [endpoint for endpoint in endpoints if endpoint.listener_name not in controllers]


def _protocol_map(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for item in _items(text):
        name, colon, protocol = item.partition(":")
        if not colon:
            raise SettingError(
                f"The setting listener.security.protocol.map has the item {item!r}, which is not "
                "NAME:PROTOCOL."
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
