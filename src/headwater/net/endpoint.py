"""Where a listener listens: a name, a host and a port, and the text form of several.

An address that is asked over HTTP is an `HttpUrl`.
"""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

DEFAULT_LISTENER_NAME = "PLAINTEXT"
PORT_MAX = 65535
_HTTP_PORTS: Final = {"http": 80, "https": 443}


class Endpoint(NamedTuple):
    """An address with the name of its listener; an empty host stands for every interface."""

    listener_name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.listener_name}://{join_address(self.host, self.port)}"


def join_address(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_every_address(host: str) -> bool:
    """Whether a host to listen on stands for all addresses of the machine."""
    try:
        return host == "" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[::1]:port`; ValueError says what is wrong."""
    host, colon, port_text = text.rpartition(":")
    if not colon:
        raise ValueError(f"{text!r} is not an address: a port is missing, as in 127.0.0.1:9092.")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or "[" in host or "]" in host:
        raise ValueError(f"{text!r} is not an address: write IPv6 as in [::1]:9092.")
    if not (port_text.isascii() and port_text.isdigit() and int(port_text) <= PORT_MAX):
        raise ValueError(f"{text!r} is not an address: {port_text!r} is no port number.")
    return host, int(port_text)


class HttpUrl(NamedTuple):
    """What is asked for at an address; `path` has the query too."""

    is_secure: bool
    host: str
    port: int
    path: str


def split_url(text: str) -> HttpUrl:
    """The parts of `http://host:port/path`; ValueError says what is wrong."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"{text!r} is not a URL.") from None
    if parts.scheme not in _HTTP_PORTS or not parts.hostname or port == 0:
        raise ValueError(f"{text!r} is not a URL such as http://localhost:4318/v1/metrics.")
    if parts.username is not None or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(f"{text!r} is not a URL that can be asked: no names, no spaces.")
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    return HttpUrl(parts.scheme == "https", parts.hostname, port or _HTTP_PORTS[parts.scheme], path)


def parse_endpoints(text: str) -> list[Endpoint]:
    """Endpoints separated by commas: `NAME://host:port`, or `host:port` for PLAINTEXT."""
    endpoints: list[Endpoint] = []
    for item in (item.strip() for item in text.split(",")):
        if not item:
            continue
        name, scheme, address = item.rpartition("://")
        if scheme and not name:
            raise ValueError(f"{item!r} has no listener name in front of '://'.")
        listener_name = name.upper() if scheme else DEFAULT_LISTENER_NAME
        endpoints.append(Endpoint(listener_name, *split_address(address)))
    if not endpoints:
        raise ValueError("There is no address to listen on.")
    return endpoints
