"""Where a broker listens, what a connection may cost, and who does the work."""

from typing import Final

from headwater.base.settings import (
    DynamicScope,
    Setting,
    SettingError,
    SettingKind,
    SettingTable,
    SettingValues,
)
from headwater.broker.settings.rows.reasons import ONE_LOOP

_INT, _LONG, _STRING = SettingKind.INT, SettingKind.LONG, SettingKind.STRING
_DYNAMIC = DynamicScope.CLUSTER_WIDE
_INT_MAX = 2**31 - 1
OVERRIDES: Final = "max.connections.per.ip.overrides"
_COUNT_DIGITS_MAX = 10
#: Connections from the broker's own machine that no limit shuts out, so that whoever has set one
#: too low can set it right: enough for a few tools at once.
RESERVED_CONNECTIONS: Final = 4

# fmt: off
_LISTENERS = [
    Setting("listeners", _STRING, "PLAINTEXT://:9092", "Where the broker listens: "
            "NAME://host:port, several with commas between. No host means every interface, port 0 "
            "a free one."),
    Setting("advertised.listeners", _STRING, None, "The addresses that clients are told, as "
            "NAME://host:port. Without it that is where the broker listens; for one on every "
            "interface, the machine's name, or without ZooKeeper the address that the client "
            "dialled."),
    Setting("listener.security.protocol.map", _STRING, "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,"
            "SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "The protocol that each listener speaks, as "
            "NAME:PROTOCOL with commas between. A broker serves PLAINTEXT."),
    Setting("controller.listener.names", _STRING, None, "Listeners of these names are left out, "
            "because a controller has no address of its own here."),
]
_SOCKETS = [
    # Kafka has 102,400 for both. That turns the kernel's own tuning off, and with large messages a
    # broker then takes twice the time for each.
    Setting("socket.send.buffer.bytes", _INT, -1, "The send buffer of a connection's socket; "
            "-1 leaves it to the operating system.", lower=-1),
    Setting("socket.receive.buffer.bytes", _INT, -1, "The receive buffer of a connection's "
            "socket; -1 leaves it to the operating system.", lower=-1),
    Setting("socket.request.max.bytes", _INT, 100 << 20, "The largest request that is read; a "
            "connection that announces a larger one is closed.", lower=1),
    Setting("socket.listen.backlog.size", _INT, 50, "How many connections may wait to be "
            "accepted.", lower=1),
    Setting("socket.connection.setup.timeout.ms", _LONG, 10_000, "How long connecting to another "
            "broker may take at first.", lower=1),
    Setting("socket.connection.setup.timeout.max.ms", _LONG, 30_000, "How long connecting to "
            "another broker may take after failures.", lower=1,
            without_effect="Every attempt to connect has the same time, "
            "socket.connection.setup.timeout.ms."),
    Setting("request.timeout.ms", _INT, 30_000, "How long a broker waits for the answer of "
            "another.", lower=1),
]
_LIMITS = [
    # Kafka takes 0 for both, and then nobody can connect any more to take it back.
    Setting("max.connections", _INT, _INT_MAX, "How many connections a broker holds at once, "
            f"beside {RESERVED_CONNECTIONS} that it keeps for its own machine.",
            lower=1, dynamic=_DYNAMIC),
    Setting("max.connections.per.ip", _INT, _INT_MAX, "How many connections one address may hold "
            "at once.", lower=1, dynamic=_DYNAMIC),
    Setting(OVERRIDES, _STRING, "", "Other limits for some addresses, as "
            "host:count with commas between.", dynamic=_DYNAMIC),
    Setting("max.connection.creation.rate", _INT, _INT_MAX, "How many connections are accepted in "
            "a second.", lower=0, dynamic=_DYNAMIC,
            without_effect="Connections are limited by their number, not by their rate."),
    Setting("connections.max.idle.ms", _LONG, 600_000, "How long a connection may be without a "
            "request before it is closed; -1 for ever.", lower=-1),
    Setting("socket.request.progress.timeout.ms", _LONG, 30_000, "How long a request may stay half "
            "received: in every such period the client has to send 16 KB of it, or the rest; -1 "
            "for ever; not in Kafka.", lower=-1, dynamic=_DYNAMIC),
    # A consumer may be busy with its records for max.poll.interval.ms, 5 minutes, before it reads.
    Setting("socket.answer.progress.timeout.ms", _LONG, 360_000, "How long an answer may stay half "
            "sent: in every such period the client has to read 16 KB of it, or the rest; -1 for "
            "ever; not in Kafka.", lower=-1, dynamic=_DYNAMIC),
    Setting("queued.max.request.bytes", _LONG, -1, "How many bytes of requests are held in memory "
            "at once before reading pauses; -1 for half of the memory that the broker may have. "
            "While others wait, those who send next to nothing of a request they have begun are "
            "disconnected.", lower=-1),
    Setting("queued.max.requests", _INT, 500, "How many requests may wait for a handler.", lower=1,
            without_effect="Requests do not wait in a queue: the loop that reads them starts them. "
            "queued.max.request.bytes and max.requests.in.flight.per.connection bound them."),
    Setting("max.requests.in.flight.per.connection", _INT, 128, "How many unanswered requests a "
            "connection may have before reading from it pauses; not in Kafka.",
            lower=1, dynamic=_DYNAMIC),
]
_THREADS = [
    Setting("num.network.threads", _INT, 3, "How many threads read requests and send answers.",
            lower=1, dynamic=_DYNAMIC,
            without_effect=ONE_LOOP),
    Setting("num.io.threads", _INT, 8, "How many threads wait for disks on behalf of requests: "
            "syncs and cold reads.", lower=1, dynamic=_DYNAMIC),
    Setting("background.threads", _INT, 10, "How many threads wait for disks in background tasks, "
            "such as deleting files.", lower=1, dynamic=_DYNAMIC),
]
# fmt: on

NETWORK_SETTINGS: Final = SettingTable("broker", [*_LISTENERS, *_SOCKETS, *_LIMITS, *_THREADS])


def host_limits(values: SettingValues) -> dict[str, int]:
    """The limits of single addresses; raises `SettingError`."""
    return parse_host_limits(values.text(OVERRIDES))


def parse_host_limits(text: str) -> dict[str, int]:
    """The same from the setting's text."""
    limits: dict[str, int] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        host, _, count = item.rpartition(":")
        host = host.strip().removeprefix("[").removesuffix("]")
        count = count.strip()
        is_count = count.isascii() and count.isdigit() and len(count) <= _COUNT_DIGITS_MAX
        if not host or not is_count:
            raise SettingError(
                f"The setting {OVERRIDES} has the item {item[:100]!r}, which is not host:count."
            )
        limits[host] = int(count)
    return limits
