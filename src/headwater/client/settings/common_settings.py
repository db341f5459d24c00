"""The settings that every client has, whatever it does: how it finds and talks to the cluster."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable
from headwater.client.connection.bootstrap import BOOTSTRAP_DEFAULT

_INT, _LONG = SettingKind.INT, SettingKind.LONG
_STRING, _LIST, _BOOLEAN = SettingKind.STRING, SettingKind.LIST, SettingKind.BOOLEAN

CLIENT_ID_DEFAULT: Final = "headwater"

_SYSTEM_BUFFERS = "The operating system sizes the buffers of a connection as it is used."
_RETRY_PAUSE = "A broker that cannot be reached is tried again as retry.backoff.ms says."
_ALL_ADDRESSES = "All addresses of a host name are tried whenever a connection is made."
_NO_PUSH = "Metrics are not sent to the brokers; ask the client for them with metrics()."
_WHOLE_METRICS = "Rates and averages are over the last 30 to 60 seconds."
_BROKER_CLOSES = (
    "A connection stays until the broker closes it, and is made again when it is needed."
)
_ALWAYS_BOOTSTRAP = "The bootstrap servers are asked whenever no known broker answers."

# fmt: off
COMMON_SETTINGS: Final = SettingTable("client", [
    Setting("bootstrap.servers", _LIST, (BOOTSTRAP_DEFAULT,), "Brokers through which the cluster "
            "is found, each as host:port. One of them that is up is enough."),
    Setting("client.id", _STRING, CLIENT_ID_DEFAULT, "The name by which brokers know this client, "
            "in their logs and quotas."),
    Setting("request.timeout.ms", _INT, 30000, "How long a broker may take to answer "
            "before the connection is given up and the request is tried again.", lower=1),
    Setting("retry.backoff.ms", _LONG, 100, "The pause before the first retry. It doubles with "
            "each further one, up to retry.backoff.max.ms.", lower=0),
    Setting("retry.backoff.max.ms", _LONG, 1000, "The longest pause before a retry.", lower=0),
    Setting("metadata.max.age.ms", _LONG, 300000, "How old the client's view of the cluster may "
            "become before it asks again, even if nothing seems to have changed.", lower=0),
    Setting("socket.connection.setup.timeout.ms", _LONG, 10000, "How long connecting to a broker "
            "may take.", lower=1),
    Setting("security.protocol", _STRING, "PLAINTEXT", "How the connections are secured.",
            choices=("PLAINTEXT",)),
    Setting("socket.connection.setup.timeout.max.ms", _LONG, 30000, "How long an attempt to "
            "connect to a broker may take at most, after several that failed.", lower=1,
            without_effect="Every attempt may take socket.connection.setup.timeout.ms."),
    Setting("reconnect.backoff.ms", _LONG, 50, "The pause before the first new attempt to connect "
            "to a broker.",
            lower=0, without_effect=_RETRY_PAUSE),
    Setting("reconnect.backoff.max.ms", _LONG, 1000, "The longest pause before another attempt to "
            "connect to a broker.", lower=0,
            without_effect=_RETRY_PAUSE),
    Setting("connections.max.idle.ms", _LONG, 540000, "How long a connection may be unused "
            "before it is closed.", without_effect=_BROKER_CLOSES),
    Setting("metadata.recovery.strategy", _STRING, "rebootstrap", "What happens when no known "
            "broker answers.", choices=("none", "rebootstrap"), without_effect=_ALWAYS_BOOTSTRAP),
    Setting("metadata.recovery.rebootstrap.trigger.ms", _LONG, 300000, "How long no broker may "
            "have answered before the bootstrap servers are asked.", lower=0,
            without_effect=_ALWAYS_BOOTSTRAP),
    Setting("client.dns.lookup", _STRING, "use_all_dns_ips", "How the host names of brokers "
            "are looked up.",
            choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            without_effect=_ALL_ADDRESSES),
    Setting("send.buffer.bytes", _INT, 131072, "The size of a socket's send buffer; -1 leaves it "
            "to the operating system.", lower=-1, without_effect=_SYSTEM_BUFFERS),
    Setting("receive.buffer.bytes", _INT, 65536, "The size of a socket's receive buffer; -1 leaves "
            "it to the operating system.", lower=-1, without_effect=_SYSTEM_BUFFERS),
    Setting("enable.metrics.push", _BOOLEAN, True, "Whether the client sends its metrics to the "
            "brokers that ask for them.", without_effect=_NO_PUSH),
    Setting("metrics.sample.window.ms", _LONG, 30000, "The time that one sample of a metric "
            "covers.", lower=0, without_effect=_WHOLE_METRICS),
    Setting("metrics.num.samples", _INT, 2, "How many samples a metric is computed from.", lower=1,
            without_effect=_WHOLE_METRICS),
    Setting("metrics.recording.level", _STRING, "INFO", "How much is measured.",
            choices=("INFO", "DEBUG", "TRACE"), without_effect="All metrics are always recorded."),
    Setting("metric.reporters", _LIST, (), "Classes that report metrics.",
            without_effect="They are Java classes. Ask the client for its metrics with metrics()."),
])
# fmt: on
