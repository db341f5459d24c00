"""Where a broker finds its cluster's metadata store, and how it leaves the cluster.

With `zookeeper.connect` the brokers that name the same ZooKeeper, and the same path in it, are one
cluster. Without it a broker is alone with the embedded store in its data directory.
"""

from typing import Final

from headwater.base.settings import Setting, SettingError, SettingKind, SettingTable, SettingValues
from headwater.broker.settings.rows.reasons import SESSIONS_TELL

_INT, _LONG, _STRING = SettingKind.INT, SettingKind.LONG, SettingKind.STRING
_BOOLEAN, _PASSWORD = SettingKind.BOOLEAN, SettingKind.PASSWORD

CONNECT: Final = "zookeeper.connect"
DIGEST_USER: Final = "zookeeper.digest.user"
DIGEST_PASSWORD: Final = "zookeeper.digest.password"
SET_ACL: Final = "zookeeper.set.acl"

# fmt: off
_ZOOKEEPER = [
    Setting(CONNECT, _STRING, None, "The ZooKeeper of the cluster: host:port, several with commas "
            "between, and behind the last one the path under which the cluster has its nodes. "
            "Without it the broker is alone, on an embedded store."),
    Setting("zookeeper.session.timeout.ms", _INT, 18_000, "How long ZooKeeper waits for a sign of "
            "life before a broker counts as gone, and its partitions get other leaders.", lower=1),
    Setting("zookeeper.connection.timeout.ms", _INT, None, "How long a start waits for ZooKeeper; "
            "for as long as it takes if this is not set.", lower=1),
    Setting("zookeeper.max.in.flight.requests", _INT, 10, "How many requests to ZooKeeper may wait "
            "for an answer.", lower=1,
            without_effect="Requests are sent as they come; ZooKeeper answers them in order."),
    Setting(SET_ACL, _BOOLEAN, False, "Whether nodes are made so that only the user of "
            "zookeeper.digest.user may read and change them."),
    Setting(DIGEST_USER, _STRING, None, "The name with which the broker identifies itself to "
            "ZooKeeper, in its digest scheme; not in Kafka."),
    Setting(DIGEST_PASSWORD, _PASSWORD, None, "The password of zookeeper.digest.user; not in "
            "Kafka."),
]
_SHUTDOWN = [
    Setting("controlled.shutdown.enable", _BOOLEAN, True, "Whether a broker that stops hands its "
            "leaderships over first."),
    Setting("controlled.shutdown.max.retries", _INT, 3, "How often a broker that stops asks "
            "again for others to take its leaderships over, before it stops anyway.", lower=0),
    Setting("controlled.shutdown.retry.backoff.ms", _LONG, 5_000, "How long a broker that "
            "stops waits before it asks again for others to take its leaderships over.", lower=0),
]
_HEARTBEATS = [
    Setting("broker.heartbeat.interval.ms", _INT, 2_000, "How often a broker reports to the "
            "quorum.", without_effect=SESSIONS_TELL),
    Setting("broker.session.timeout.ms", _INT, 9_000, "How long the quorum waits for a report.",
            without_effect=SESSIONS_TELL),
]
# fmt: on

CLUSTER_SETTINGS: Final = SettingTable("broker", [*_ZOOKEEPER, *_SHUTDOWN, *_HEARTBEATS])


def check_cluster_settings(values: SettingValues) -> None:
    """Refuse what is no address of ZooKeeper, or half of a digest; raises `SettingError`."""
    connect = values.optional_text(CONNECT)
    if connect is not None:
        _check_connect(connect)
    is_named = bool(values.optional_text(DIGEST_USER))
    if is_named != bool(values.optional_text(DIGEST_PASSWORD)):
        raise SettingError(
            f"The settings {DIGEST_USER} and {DIGEST_PASSWORD} belong together: one of them is not "
            "set."
        )
    if values.boolean(SET_ACL) and not is_named:
        raise SettingError(
            f"The setting {SET_ACL} is true, but nobody would have the right to use the nodes: set "
            f"{DIGEST_USER}."
        )


def _check_connect(text: str) -> None:
    servers, slash, chroot = text.partition("/")
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        is_address = host.strip("[]") if colon else port
        if not is_address or (colon and not (port.isascii() and port.isdigit())):
            raise SettingError(
                f"The setting {CONNECT} is not right: {server.strip()!r} is not HOST:PORT."
            )
        if colon and not 0 < int(port) < 65_536:
            raise SettingError(f"The setting {CONNECT} is not right: there is no port {port}.")
    names = chroot.split("/") if slash and chroot else []
    if any(name in ("", ".", "..") or "," in name for name in names):
        raise SettingError(
            f"The setting {CONNECT} is not right: {slash + chroot!r} is not a path; one stands "
            "behind the last server only."
        )
