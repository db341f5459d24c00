"""The settings of a producer, with Kafka's names and defaults, and which of them need others."""

from typing import Final

from headwater.base.settings import (
    Setting,
    SettingError,
    SettingKind,
    SettingTable,
    SettingValues,
)
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.settings.trace_settings import TRACE_SETTINGS
from headwater.client.spool.settings import SPOOL_SETTINGS
from headwater.wire.records import Compression

_INT, _LONG, _BOOLEAN = SettingKind.INT, SettingKind.LONG, SettingKind.BOOLEAN
_STRING, _CLASS = SettingKind.STRING, SettingKind.CLASS

BLOCK: Final = "block"
DROP: Final = "drop"
#: The largest number of requests in flight with which a broker can tell the order of batches.
IDEMPOTENT_IN_FLIGHT_MAX: Final = 5

# fmt: off
PRODUCER_ONLY_SETTINGS: Final = SettingTable("producer", [
    Setting("acks", _STRING, "all", "How many replicas must have a batch before the broker "
            "answers: all that are in sync, 1 for the leader alone, 0 for no answer at all.",
            choices=("all", "-1", "1", "0")),
    Setting("enable.idempotence", _BOOLEAN, True, "Whether batches are numbered, so that one that "
            "is sent twice is written once, and in its place."),
    Setting("batch.size", _INT, 16384, "How many bytes of records go into a batch at most; 0 "
            "makes each record a batch of its own.", lower=0),
    Setting("linger.ms", _LONG, 5, "How long a batch that is not full waits for more records.",
            lower=0),
    Setting("buffer.memory", _LONG, 33554432, "How many bytes of memory the records that are not "
            "yet written may take.", lower=0),
    Setting("buffer.full.policy", _STRING, BLOCK, "What becomes of a record for which "
            "buffer.memory has no room: with block, send waits for up to max.block.ms; with drop, "
            "the record is dropped, counted, and reported to on_drop.", choices=(BLOCK, DROP)),
    Setting("max.block.ms", _LONG, 60000, "How long a call may wait: for memory, for a topic that "
            "is not known yet, or for a transaction to begin or end.", lower=0),
    Setting("exit.flush.timeout.ms", _INT, 10000, "How long the end of the program waits for "
            "producers that nobody closed to write their records; 0 for not at all. How many "
            "could not be written is logged. An AsyncProducer cannot be waited for: only the log "
            "tells what it did not write.", lower=0),
    Setting("max.request.size", _INT, 1048576, "The largest record, and about the largest "
            "request, in bytes before compression.", lower=0),
    Setting("compression.type", _STRING, "none", "How batches are compressed.",
            choices=("none", "gzip", "snappy", "lz4", "zstd")),
    Setting("compression.gzip.level", _INT, -1, "The compression level of gzip, from 1 (fast) to 9 "
            "(small); -1 for gzip's own default.", lower=-1, upper=9),
    Setting("compression.lz4.level", _INT, 9, "The compression level of lz4: higher is smaller and "
            "slower.", lower=1, upper=17),
    Setting("compression.zstd.level", _INT, 3, "The compression level of zstd: higher is smaller "
            "and slower.", lower=-131072, upper=22),
    Setting("retries", _INT, 2**31 - 1, "How many times a batch is sent again. "
            "delivery.timeout.ms limits that too, and is usually the better setting to change.",
            lower=0),
    Setting("delivery.timeout.ms", _INT, 120000, "How long it may take to find out what "
            "became of a record, with linger.ms, all attempts and the pauses between them.",
            lower=0),
    Setting("max.in.flight.requests.per.connection", _INT, 5, "How many requests to a broker may "
            "be waiting for their answers. Without idempotence, more than 1 means that a retry can "
            "change the order of records.", lower=1),
    Setting("partitioner.ignore.keys", _BOOLEAN, False, "Whether the default partitioner treats "
            "records with a key like those without one."),
    Setting("partitioner.adaptive.partitioning.enable", _BOOLEAN, True, "Whether records without "
            "a key prefer partitions for which fewer batches wait to be sent."),
    Setting("partitioner.availability.timeout.ms", _LONG, 0, "How long a partition may make no "
            "progress before it gets no more records without a key.", lower=0,
            without_effect="A partition is avoided while it has no leader or many batches wait."),
    Setting("metadata.max.idle.ms", _LONG, 300000, "How long the metadata of an unused topic "
            "are kept.", lower=5000, without_effect="They are kept as long as the producer lives."),
    Setting("key.serializer", _CLASS, None, "The class that turns keys into bytes.",
            without_effect="Pass a function or an object to the constructor: key_serializer=..."),
    Setting("value.serializer", _CLASS, None, "The class that turns values into bytes.",
            without_effect="Pass a function or an object to the constructor: value_serializer=..."),
    Setting("partitioner.class", _CLASS, None, "The class that chooses partitions.",
            without_effect="Pass a function to the constructor: partitioner=..."),
    Setting("interceptor.classes", SettingKind.LIST, (), "The classes of interceptors.",
            without_effect="Pass objects to the constructor: interceptors=[...]."),
    Setting("audit.ids.enable", _BOOLEAN, False, "Whether each record gets a header "
            "headwater-audit with an id, so that headwater audit ids can tell exactly which "
            "records are missing and which came twice."),
    Setting("transactional.id", _STRING, None, "The name under which the producer writes in "
            "transactions. A new producer with the same name fences the old one."),
    Setting("transaction.timeout.ms", _INT, 60000, "How long a transaction may stay open before "
            "its coordinator aborts it.", lower=1),
    Setting("transaction.two.phase.commit.enable", _BOOLEAN, False, "Whether transactions can be "
            "prepared, and then stay open until their outcome is decided."),
])
# fmt: on

PRODUCER_SETTINGS: Final = SettingTable.combine(
    "producer",
    COMMON_SETTINGS,
    PRODUCER_ONLY_SETTINGS,
    SPOOL_SETTINGS,
    TRACE_SETTINGS,
)

_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"


def acks_of(values: SettingValues) -> int:
    """The number that a request carries; -1 for all."""
    text = values.text("acks")
    return -1 if text == "all" else int(text)


def is_idempotent(values: SettingValues) -> bool:
    """Whether batches are numbered: unless it is turned off, or by default if the rest allows."""
    if values.optional_text("transactional.id") is not None:
        return True
    if values.is_set("enable.idempotence"):
        return values.boolean("enable.idempotence")
    return not _contradiction(values)


def check_producer_settings(values: SettingValues) -> None:
    """Raise `SettingError` where settings that somebody chose contradict each other."""
    transactional_id = values.optional_text("transactional.id")
    is_refused = values.is_set("enable.idempotence") and not values.boolean("enable.idempotence")
    if transactional_id is not None:
        if not transactional_id:
            raise SettingError("The setting transactional.id cannot be empty.")
        if is_refused:
            raise SettingError("transactional.id needs enable.idempotence=true.")
    is_wanted = transactional_id is not None or (
        values.is_set("enable.idempotence") and not is_refused
    )
    contradiction = _contradiction(values)
    if is_wanted and contradiction:
        wish = "enable.idempotence=true" if transactional_id is None else "transactional.id"
        raise SettingError(f"{wish} needs {contradiction}.")
    linger_ms = values.integer("linger.ms")
    request_timeout_ms = values.integer("request.timeout.ms")
    if values.integer("delivery.timeout.ms") < linger_ms + request_timeout_ms and values.is_set(
        "delivery.timeout.ms"
    ):
        raise SettingError(
            "delivery.timeout.ms must be at least linger.ms + request.timeout.ms, "
            f"which is {linger_ms + request_timeout_ms}."
        )


def delivery_timeout_ms(values: SettingValues) -> int:
    """At least as long as a single attempt takes, where nobody chose it."""
    least = values.integer("linger.ms") + values.integer("request.timeout.ms")
    return max(values.integer("delivery.timeout.ms"), least)


def compression_of(values: SettingValues) -> tuple[Compression, int | None]:
    """The codec of batches, and how hard it tries if that can be said."""
    name = values.text("compression.type")
    kind = Compression[name.upper()]
    setting = f"compression.{name}.level"
    if kind in (Compression.NONE, Compression.SNAPPY) or not values.is_set(setting):
        return kind, None
    return kind, values.integer(setting)


def _contradiction(values: SettingValues) -> str:
    """What idempotence needs and somebody has chosen otherwise; empty if nothing."""
    if acks_of(values) != -1:
        return f"acks=all, but acks is {values.text('acks')}"
    if values.integer("retries") == 0:
        return "retries to be more than 0"
    if values.integer(_IN_FLIGHT) > IDEMPOTENT_IN_FLIGHT_MAX:
        return f"{_IN_FLIGHT} to be at most {IDEMPOTENT_IN_FLIGHT_MAX}"
    return ""
