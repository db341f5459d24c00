"""Bootstrap servers: the addresses through which a client first finds a cluster.

They are written `host:port,host:port`. A port that is left out is Kafka's own, 9092; an IPv6
address that has a port stands in brackets, as in `[::1]:9092`. A listener's scheme in front, as in
`PLAINTEXT://host:9092`, is what brokers print, so it is accepted.
"""

import re
from typing import Final, NamedTuple

from headwater.client.errors import InvalidAddressError

PORT_DEFAULT: Final = 9092
PORT_MAX: Final = 65535
BOOTSTRAP_DEFAULT: Final = f"127.0.0.1:{PORT_DEFAULT}"

_SCHEME = re.compile(r"([A-Za-z_]+)://")
_BRACKETED = re.compile(r"\[([^\[\]]+)\](?::([0-9]+))?")
_PLAIN = re.compile(r"([^\s:/\[\]]+)(?::([0-9]+))?")
_BARE_IPV6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.%\w]*")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(text: str) -> list[Address]:
    """The addresses in a list with commas, each once and in order."""
    parts = [part.strip() for part in text.split(",")]
    addresses = [_parse_address(part) for part in parts if part]
    if not addresses:
        raise InvalidAddressError(
            "No bootstrap server is named: it should be like 'host:9092' or 'host1:9092,host2'."
        )
    return list(dict.fromkeys(addresses))


def _parse_address(text: str) -> Address:
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].upper() != "PLAINTEXT":
        raise InvalidAddressError(
            f"The bootstrap server {text!r} asks for {scheme[1]}, but only PLAINTEXT is supported."
        )
    rest = text[scheme.end() :] if scheme is not None else text
    if _BARE_IPV6.fullmatch(rest):
        return Address(rest, PORT_DEFAULT)
    match = _BRACKETED.fullmatch(rest) or _PLAIN.fullmatch(rest)
    if match is None:
        raise InvalidAddressError(
            f"{text!r} is not a bootstrap server: it should be a host and a port, "
            "as in 'host:9092'."
        )
    port = PORT_DEFAULT if match[2] is None else int(match[2])
    if not 1 <= port <= PORT_MAX:
        raise InvalidAddressError(
            f"The bootstrap server {text!r} has the port {port}, "
            f"which is not between 1 and {PORT_MAX}."
        )
    return Address(match[1], port)
