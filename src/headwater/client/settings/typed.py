"""The settings of clients as keywords, with their types.

For `Producer(**settings)`, where an editor completes them and a type checker refuses others, and
for dictionaries of them. Text is read as in a properties file, and None leaves the default. Written
by tools/typed_settings.py from the tables beside it, so not to be edited.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict

from headwater.client.assignors.assignor import AssignorLike


class ClientSettings(TypedDict, total=False):
    """Every client has these."""

    bootstrap_servers: str | Sequence[str] | None
    """Brokers through which the cluster is found, each as host:port. One of them that is up is
    enough. Default: 127.0.0.1:9092.
    """

    client_id: str | None
    """The name by which brokers know this client, in their logs and quotas. Default: headwater."""

    request_timeout_ms: int | timedelta | str | None
    """How long a broker may take to answer before the connection is given up and the request is
    tried again. Default: 30000.
    """

    retry_backoff_ms: int | timedelta | str | None
    """The pause before the first retry. It doubles with each further one, up to
    retry.backoff.max.ms. Default: 100.
    """

    retry_backoff_max_ms: int | timedelta | str | None
    """The longest pause before a retry. Default: 1000."""

    metadata_max_age_ms: int | timedelta | str | None
    """How old the client's view of the cluster may become before it asks again, even if nothing
    seems to have changed. Default: 300000.
    """

    socket_connection_setup_timeout_ms: int | timedelta | str | None
    """How long connecting to a broker may take. Default: 10000."""

    security_protocol: Literal["PLAINTEXT"] | None
    """How the connections are secured. Default: PLAINTEXT."""

    socket_connection_setup_timeout_max_ms: int | timedelta | str | None
    """How long an attempt to connect to a broker may take at most, after several that failed.
    Default: 30000. Without effect: Every attempt may take socket.connection.setup.timeout.ms.
    """

    reconnect_backoff_ms: int | timedelta | str | None
    """The pause before the first new attempt to connect to a broker. Default: 50. Without effect: A
    broker that cannot be reached is tried again as retry.backoff.ms says.
    """

    reconnect_backoff_max_ms: int | timedelta | str | None
    """The longest pause before another attempt to connect to a broker. Default: 1000. Without
    effect: A broker that cannot be reached is tried again as retry.backoff.ms says.
    """

    connections_max_idle_ms: int | timedelta | str | None
    """How long a connection may be unused before it is closed. Default: 540000. Without effect: A
    connection stays until the broker closes it, and is made again when it is needed.
    """

    metadata_recovery_strategy: Literal["none", "rebootstrap"] | None
    """What happens when no known broker answers. Default: rebootstrap. Without effect: The
    bootstrap servers are asked whenever no known broker answers.
    """

    metadata_recovery_rebootstrap_trigger_ms: int | timedelta | str | None
    """How long no broker may have answered before the bootstrap servers are asked. Default: 300000.
    Without effect: The bootstrap servers are asked whenever no known broker answers.
    """

    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] | None
    """How the host names of brokers are looked up. Default: use_all_dns_ips. Without effect: All
    addresses of a host name are tried whenever a connection is made.
    """

    send_buffer_bytes: int | str | None
    """The size of a socket's send buffer; -1 leaves it to the operating system. Default: 131072.
    Without effect: The operating system sizes the buffers of a connection as it is used.
    """

    receive_buffer_bytes: int | str | None
    """The size of a socket's receive buffer; -1 leaves it to the operating system. Default: 65536.
    Without effect: The operating system sizes the buffers of a connection as it is used.
    """

    enable_metrics_push: bool | str | None
    """Whether the client sends its metrics to the brokers that ask for them. Default: true. Without
    effect: Metrics are not sent to the brokers; ask the client for them with metrics().
    """

    metrics_sample_window_ms: int | timedelta | str | None
    """The time that one sample of a metric covers. Default: 30000. Without effect: Rates and
    averages are over the last 30 to 60 seconds.
    """

    metrics_num_samples: int | str | None
    """How many samples a metric is computed from. Default: 2. Without effect: Rates and averages
    are over the last 30 to 60 seconds.
    """

    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"] | None
    """How much is measured. Default: INFO. Without effect: All metrics are always recorded."""

    metric_reporters: str | Sequence[str] | None
    """Classes that report metrics. Without effect: They are Java classes. Ask the client for its
    metrics with metrics().
    """


class ProducerSettings(ClientSettings, total=False):
    """For `Producer` and `AsyncProducer`."""

    acks: Literal["all", "-1", "1", "0", -1, 1, 0] | None
    """How many replicas must have a batch before the broker answers: all that are in sync, 1 for
    the leader alone, 0 for no answer at all. Default: all.
    """

    enable_idempotence: bool | str | None
    """Whether batches are numbered, so that one that is sent twice is written once, and in its
    place. Default: true.
    """

    batch_size: int | str | None
    """How many bytes of records go into a batch at most; 0 makes each record a batch of its own.
    Default: 16384.
    """

    linger_ms: int | timedelta | str | None
    """How long a batch that is not full waits for more records. Default: 5."""

    buffer_memory: int | str | None
    """How many bytes of memory the records that are not yet written may take. Default: 33554432."""

    buffer_full_policy: Literal["block", "drop"] | None
    """What becomes of a record for which buffer.memory has no room: with block, send waits for up
    to max.block.ms; with drop, the record is dropped, counted, and reported to on_drop. Default:
    block.
    """

    max_block_ms: int | timedelta | str | None
    """How long a call may wait: for memory, for a topic that is not known yet, or for a transaction
    to begin or end. Default: 60000.
    """

    exit_flush_timeout_ms: int | timedelta | str | None
    """How long the end of the program waits for producers that nobody closed to write their
    records; 0 for not at all. How many could not be written is logged. An AsyncProducer cannot be
    waited for: only the log tells what it did not write. Default: 10000.
    """

    max_request_size: int | str | None
    """The largest record, and about the largest request, in bytes before compression. Default:
    1048576.
    """

    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    """How batches are compressed. Default: none."""

    compression_gzip_level: int | str | None
    """The compression level of gzip, from 1 (fast) to 9 (small); -1 for gzip's own default.
    Default: -1.
    """

    compression_lz4_level: int | str | None
    """The compression level of lz4: higher is smaller and slower. Default: 9."""

    compression_zstd_level: int | str | None
    """The compression level of zstd: higher is smaller and slower. Default: 3."""

    retries: int | str | None
    """How many times a batch is sent again. delivery.timeout.ms limits that too, and is usually the
    better setting to change. Default: 2147483647.
    """

    delivery_timeout_ms: int | timedelta | str | None
    """How long it may take to find out what became of a record, with linger.ms, all attempts and
    the pauses between them. Default: 120000.
    """

    max_in_flight_requests_per_connection: int | str | None
    """How many requests to a broker may be waiting for their answers. Without idempotence, more
    than 1 means that a retry can change the order of records. Default: 5.
    """

    partitioner_ignore_keys: bool | str | None
    """Whether the default partitioner treats records with a key like those without one. Default:
    false.
    """

    partitioner_adaptive_partitioning_enable: bool | str | None
    """Whether records without a key prefer partitions for which fewer batches wait to be sent.
    Default: true.
    """

    partitioner_availability_timeout_ms: int | timedelta | str | None
    """How long a partition may make no progress before it gets no more records without a key.
    Default: 0. Without effect: A partition is avoided while it has no leader or many batches wait.
    """

    metadata_max_idle_ms: int | timedelta | str | None
    """How long the metadata of an unused topic are kept. Default: 300000. Without effect: They are
    kept as long as the producer lives.
    """

    partitioner_class: str | None
    """The class that chooses partitions. Without effect: Pass a function to the constructor:
    partitioner=...
    """

    interceptor_classes: str | Sequence[str] | None
    """The classes of interceptors. Without effect: Pass objects to the constructor:
    interceptors=[...].
    """

    audit_ids_enable: bool | str | None
    """Whether each record gets a header headwater-audit with an id, so that headwater audit ids can
    tell exactly which records are missing and which came twice. Default: false.
    """

    transactional_id: str | None
    """The name under which the producer writes in transactions. A new producer with the same name
    fences the old one.
    """

    transaction_timeout_ms: int | timedelta | str | None
    """How long a transaction may stay open before its coordinator aborts it. Default: 60000."""

    transaction_two_phase_commit_enable: bool | str | None
    """Whether transactions can be prepared, and then stay open until their outcome is decided.
    Default: false.
    """

    spool_fsync: Literal["always", "interval", "never"] | None
    """When the spool's files are forced to disk: before each send returns (always), every
    spool.fsync.interval.ms (interval), or whenever the operating system does it (never). A process
    that is killed loses nothing with any of them; a machine that loses power keeps only what was
    forced. Default: always.
    """

    spool_fsync_interval_ms: int | timedelta | str | None
    """How long a record may wait to be forced to disk, with spool.fsync=interval. Default: 1000."""

    spool_max_bytes: int | str | None
    """How much disk the spool may take for what is not shipped yet. When it is full,
    buffer.full.policy says whether a send waits for room or drops its record. Default: 1073741824.
    """

    spool_segment_bytes: int | str | None
    """The size at which the spool begins a new file, at most a quarter of spool.max.bytes. Disk
    space is freed one whole file at a time. Default: 16777216.
    """

    spool_window_records: int | str | None
    """How far shipping may run ahead of the position that is safely on disk, which is also the
    largest number of records that a crash can cause to be sent a second time. Default: 10000.
    """

    trace_enable: bool | str | None
    """Whether the client writes what it does with records, for headwater trace and for
    OpenTelemetry. Without it tracing costs nothing. Default: false.
    """

    trace_sample: float | str | None
    """Which share of its records a producer traces, from 0 to 1, whatever their topics say. Without
    it the topic's trace.sample counts, and nothing is sampled on a cluster that has no such
    setting. Records that carry a traceparent are traced if that is sampled. A consumer traces what
    producers have chosen.
    """

    trace_topic: str | None
    """The topic that steps are written to; empty for none, where they are only exported. Default:
    __trace.
    """

    trace_buffer_steps: int | str | None
    """How many steps may wait to be written. What comes beyond that is dropped and counted
    (trace-steps-dropped-total). Default: 10000.
    """

    trace_otlp_endpoint: str | None
    """Where steps are exported to as spans of OpenTelemetry, by OTLP over HTTP, as in
    http://127.0.0.1:4318. Needs the extra otel.
    """

    trace_otlp_parent: bool | str | None
    """Whether the span of a handler is a child of the span that sent the record. Otherwise it is
    linked to that, and has a trace of its own. Default: false.
    """


class ConsumerSettings(ClientSettings, total=False):
    """For `Consumer` and `AsyncConsumer`."""

    group_id: str | None
    """The group that this consumer belongs to: its members share the partitions of their topics.
    Needed to subscribe and to commit.
    """

    group_instance_id: str | None
    """The name of a static member: one that may leave and come back within session.timeout.ms
    without a rebalance.
    """

    group_protocol: Literal["classic", "consumer"] | None
    """Who assigns the partitions to the members of the group: one of the members (classic), or the
    coordinator (consumer). Default: classic.
    """

    group_remote_assignor: str | None
    """With group.protocol=consumer, the name of the assignor that the coordinator uses. Without
    one, the coordinator chooses.
    """

    partition_assignment_strategy: AssignorLike | Sequence[AssignorLike] | None
    """With group.protocol=classic, the assignors in order of preference: range, roundrobin, sticky,
    cooperative-sticky, or one of your own as an object. Default: range,cooperative-sticky.
    """

    session_timeout_ms: int | timedelta | str | None
    """How long the coordinator may hear no heartbeat of this member before it considers it dead.
    Default: 45000.
    """

    heartbeat_interval_ms: int | timedelta | str | None
    """How often this member sends a heartbeat to the coordinator; at most a third of
    session.timeout.ms. Default: 3000.
    """

    max_poll_interval_ms: int | timedelta | str | None
    """How long may pass between two calls of poll before this member leaves the group. Default:
    300000.
    """

    max_poll_records: int | str | None
    """How many records one call of poll returns at most. poll_arrow has a limit of its own.
    Default: 500.
    """

    enable_auto_commit: bool | str | None
    """Whether later calls of poll commit what earlier ones returned, every auto.commit.interval.ms.
    Default: true.
    """

    auto_commit_interval_ms: int | timedelta | str | None
    """How often poll commits, with enable.auto.commit. Default: 5000."""

    auto_offset_reset: str | None
    """Where to start reading if the group has committed no offset, or one that does not exist any
    more: earliest, latest, none (raise an error), or by_duration:PnDTnHnMn.nS for a time that long
    ago. Default: latest.
    """

    isolation_level: Literal["read_uncommitted", "read_committed"] | None
    """Whether to return the records of transactions that are open or were aborted too
    (read_uncommitted), or only what is committed (read_committed). Default: read_uncommitted.
    """

    fetch_min_bytes: int | str | None
    """How many bytes a broker collects before it answers a fetch, for up to fetch.max.wait.ms.
    Default: 1.
    """

    fetch_max_bytes: int | str | None
    """How many bytes one answer to a fetch may hold. A first batch that is larger is returned all
    the same. Default: 52428800.
    """

    max_partition_fetch_bytes: int | str | None
    """How many bytes of one partition an answer to a fetch may hold. A first batch that is larger
    is returned all the same. Default: 1048576.
    """

    fetch_max_wait_ms: int | timedelta | str | None
    """How long a broker waits for fetch.min.bytes before it answers a fetch with less. Default:
    500.
    """

    check_crcs: bool | str | None
    """Whether the checksums of records are checked. Default: true."""

    corrupt_batch_policy: Literal["fail", "skip"] | None
    """What happens at a batch that cannot be read: with fail, every poll raises an error that names
    its offsets, until somebody seeks; with skip, the batch is left out, counted and logged.
    Default: fail.
    """

    client_rack: str | None
    """Where this consumer is, so that it can read from a replica that is near."""

    allow_auto_create_topics: bool | str | None
    """Whether subscribing to a topic may create it, on a cluster that creates topics automatically.
    Default: true.
    """

    exclude_internal_topics: bool | str | None
    """Whether a subscription by pattern leaves out internal topics. Default: true."""

    default_api_timeout_ms: int | timedelta | str | None
    """How long a call may take that is not given a time limit of its own. Default: 60000."""

    interceptor_classes: str | Sequence[str] | None
    """Classes that see records and commits. Without effect: Pass objects to the constructor:
    interceptors=[...].
    """

    trace_enable: bool | str | None
    """Whether the client writes what it does with records, for headwater trace and for
    OpenTelemetry. Without it tracing costs nothing. Default: false.
    """

    trace_sample: float | str | None
    """Which share of its records a producer traces, from 0 to 1, whatever their topics say. Without
    it the topic's trace.sample counts, and nothing is sampled on a cluster that has no such
    setting. Records that carry a traceparent are traced if that is sampled. A consumer traces what
    producers have chosen.
    """

    trace_topic: str | None
    """The topic that steps are written to; empty for none, where they are only exported. Default:
    __trace.
    """

    trace_buffer_steps: int | str | None
    """How many steps may wait to be written. What comes beyond that is dropped and counted
    (trace-steps-dropped-total). Default: 10000.
    """

    trace_otlp_endpoint: str | None
    """Where steps are exported to as spans of OpenTelemetry, by OTLP over HTTP, as in
    http://127.0.0.1:4318. Needs the extra otel.
    """

    trace_otlp_parent: bool | str | None
    """Whether the span of a handler is a child of the span that sent the record. Otherwise it is
    linked to that, and has a trace of its own. Default: false.
    """


class AdminSettings(ClientSettings, total=False):
    """For `Admin` and `AsyncAdmin`."""

    default_api_timeout_ms: int | timedelta | str | None
    """How long an operation may take, with all its retries, if the call has no time limit of its
    own. Default: 60000.
    """

    retries: int | str | None
    """How many times a failed request is tried again. Default: 2147483647. Without effect: The time
    of an operation bounds its retries, not their number.
    """
