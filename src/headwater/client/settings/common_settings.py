"""The settings that every client has, whatever it does: how it finds and talks to the cluster."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable
from headwater.client.connection.bootstrap import BOOTSTRAP_DEFAULT

_INT, _LONG = SettingKind.INT, SettingKind.LONG
_STRING, _LIST, _BOOLEAN = SettingKind.STRING, SettingKind.LIST, SettingKind.BOOLEAN

CLIENT_ID_DEFAULT: Final = "headwater"

_SYSTEM_BUFFERS = "The operating system sizes the buffers of a connection as it is used."
_RETRY_PAUSE = "A broker that is away is tried again after the pauses of retry.backoff.ms."
_ALL_ADDRESSES = "All addresses of a name are tried, each time one is connected to."
_NO_PUSH = "Metrics are not sent to the brokers; ask the client for them with metrics()."
_WHOLE_METRICS = "Rates and averages are over the last 30 to 60 seconds."
_BROKER_CLOSES = (
    "A connection stays until the broker closes it, and is made again when it is needed."
)
_ALWAYS_BOOTSTRAP = "The bootstrap servers are asked whenever no known broker answers."

# fmt: off
COMMON_SETTINGS: Final = SettingTable("client", [
    Setting("bootstrap.servers", _LIST, (BOOTSTRAP_DEFAULT,), "Brokers through which the cluster "
            "is found, as host:port; one that is up is enough."),
    Setting("client.id", _STRING, CLIENT_ID_DEFAULT, "The name by which brokers know this client, "
            "in their logs and quotas."),
    Setting("request.timeout.ms", _INT, 30000, "How long an answer may take before its "
            "connection is given up and the request tried again.", lower=1),
    Setting("retry.backoff.ms", _LONG, 100, "The pause before the first retry; it doubles with "
            "each further one.", lower=0),
    Setting("retry.backoff.max.ms", _LONG, 1000, "The longest pause before a retry.", lower=0),
    Setting("metadata.max.age.ms", _LONG, 300000, "How old the client's view of the cluster may "
            "become before it asks again, though nothing seems to have changed.", lower=0),
    Setting("socket.connection.setup.timeout.ms", _LONG, 10000, "How long connecting to a broker "
            "may take.", lower=1),
    Setting("security.protocol", _STRING, "PLAINTEXT", "How the connections are secured.",
            choices=("PLAINTEXT",)),
    Setting("socket.connection.setup.timeout.max.ms", _LONG, 30000, "How long connecting may take "
            "at most, after failures.", lower=1,
            without_effect="Each attempt has socket.connection.setup.timeout.ms."),
    Setting("reconnect.backoff.ms", _LONG, 50, "The pause before a broker is connected to again.",
            lower=0, without_effect=_RETRY_PAUSE),
    Setting("reconnect.backoff.max.ms", _LONG, 1000, "The longest of these pauses.", lower=0,
            without_effect=_RETRY_PAUSE),
    Setting("connections.max.idle.ms", _LONG, 540000, "After how long an unused connection is "
            "closed.", without_effect=_BROKER_CLOSES),
    Setting("metadata.recovery.strategy", _STRING, "rebootstrap", "What happens when no known "
            "broker answers.", choices=("none", "rebootstrap"), without_effect=_ALWAYS_BOOTSTRAP),
    Setting("metadata.recovery.rebootstrap.trigger.ms", _LONG, 300000, "How long no broker answers "
            "until the bootstrap servers are asked.", lower=0, without_effect=_ALWAYS_BOOTSTRAP),
    Setting("client.dns.lookup", _STRING, "use_all_dns_ips", "How names of brokers are looked up.",
            choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            without_effect=_ALL_ADDRESSES),
    Setting("send.buffer.bytes", _INT, 131072, "The size of a socket's send buffer; -1 leaves it "
            "to the system.", lower=-1, without_effect=_SYSTEM_BUFFERS),
    Setting("receive.buffer.bytes", _INT, 65536, "The size of a socket's receive buffer; -1 leaves "
            "it to the system.", lower=-1, without_effect=_SYSTEM_BUFFERS),
    Setting("enable.metrics.push", _BOOLEAN, True, "Whether the client sends its metrics to the "
            "brokers that ask for them.", without_effect=_NO_PUSH),
    Setting("metrics.sample.window.ms", _LONG, 30000, "The time over which metrics are sampled.",
            lower=0, without_effect=_WHOLE_METRICS),
    Setting("metrics.num.samples", _INT, 2, "How many samples metrics are made of.", lower=1,
            without_effect=_WHOLE_METRICS),
    Setting("metrics.recording.level", _STRING, "INFO", "How much is measured.",
            choices=("INFO", "DEBUG", "TRACE"), without_effect="All metrics are always recorded."),
    Setting("metric.reporters", _LIST, (), "Classes that report metrics.",
            without_effect="They are classes of Java; ask the client with metrics()."),
])
# fmt: on
