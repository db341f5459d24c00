"""What a broker is told when it starts: a properties file, then single assignments over it.

Each value is checked by its row when it is read; `check_static` checks what only several values
together can get wrong. The message of a `SettingError` is for whoever wrote the configuration.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from headwater.base.settings import SettingError, SettingValues, read_properties_file
from headwater.broker.settings.rows.cluster import check_cluster_settings
from headwater.broker.settings.rows.identity import broker_id_of
from headwater.broker.settings.rows.network import host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS
from headwater.net.endpoint import Endpoint, parse_endpoints, split_address
from headwater.storage.log_settings import log_directory_paths, make_log_config

ASSIGNMENT_SOURCE = "--set"
_SERVED_PROTOCOL = "PLAINTEXT"

T = TypeVar("T")


def read_static(
    file_text: str = "", file_name: str = "", assignments: Iterable[str] = ()
) -> SettingValues:
    """The values of a configuration file and of `name=value` assignments, checked."""
    values = BROKER_SETTINGS.defaults()
    if file_text:
        values = values.with_overrides(read_properties_file(file_text, file_name), file_name)
    values = values.with_overrides(parse_assignments(assignments), ASSIGNMENT_SOURCE)
    check_static(values)
    return values


def static_of(texts: Mapping[str, str], source: str = "") -> SettingValues:
    """The values of a configuration that is there already as names and texts, checked."""
    values = BROKER_SETTINGS.parse(texts, source)
    check_static(values)
    return values


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """The names and texts of `name=value` arguments; the last one of a name counts."""
    texts: dict[str, str] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise SettingError(f"{assignment!r} sets nothing: it must be name=value.")
        texts[name.strip()] = text
    return texts


def check_static(values: SettingValues) -> None:
    """Refuse values that contradict each other; raises `SettingError`."""
    broker_id_of(values)
    log_directory_paths(values)
    make_log_config(values)
    client_endpoints(values)
    advertised = values.optional_text("advertised.listeners")
    if advertised:
        _parsed("advertised.listeners", parse_endpoints, advertised)
    if values.text("metrics.listen"):
        _parsed("metrics.listen", split_address, values.text("metrics.listen"))
    host_limits(values)
    check_cluster_settings(values)


def client_endpoints(values: SettingValues) -> list[Endpoint]:
    """Where clients are listened for; a protocol that is not served is an error."""
    protocols = _protocol_map(values.text("listener.security.protocol.map"))
    controllers = _items((values.optional_text("controller.listener.names") or "").upper())
    endpoints = [
        endpoint
        for endpoint in _parsed("listeners", parse_endpoints, values.text("listeners"))
        if endpoint.listener_name not in controllers
    ]
    if not endpoints:
        raise SettingError("The setting listeners has no address where clients are listened for.")
    for name in (endpoint.listener_name for endpoint in endpoints):
        protocol = protocols.get(name)
        if protocol is None:
            raise SettingError(
                f"The setting listeners names {name}, for which listener.security.protocol.map "
                "has no protocol."
            )
        if protocol != _SERVED_PROTOCOL:
            raise SettingError(
                f"The listener {name} is to speak {protocol}, and this release serves "
                f"{_SERVED_PROTOCOL} only."
            )
    return endpoints


def _parsed(name: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise SettingError(f"The setting {name} is not right: {error}") from None


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
