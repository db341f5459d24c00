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
    """Brokers through which the cluster is found, as host:port; one that is up is enough. Default:
    127.0.0.1:9092.
    """

    client_id: str | None
    """The name by which brokers know this client, in their logs and quotas. Default: headwater."""

    request_timeout_ms: int | timedelta | str | None
    """How long an answer may take before its connection is given up and the request tried again.
    Default: 30000.
    """

    retry_backoff_ms: int | timedelta | str | None
    """The pause before the first retry; it doubles with each further one. Default: 100."""

    retry_backoff_max_ms: int | timedelta | str | None
    """The longest pause before a retry. Default: 1000."""

    metadata_max_age_ms: int | timedelta | str | None
    """How old the client's view of the cluster may become before it asks again, though nothing
    seems to have changed. Default: 300000.
    """

    socket_connection_setup_timeout_ms: int | timedelta | str | None
    """How long connecting to a broker may take. Default: 10000."""

    security_protocol: Literal["PLAINTEXT"] | None
    """How the connections are secured. Default: PLAINTEXT."""

    socket_connection_setup_timeout_max_ms: int | timedelta | str | None
    """How long connecting may take at most, after failures. Default: 30000. Without effect: Each
    attempt has socket.connection.setup.timeout.ms.
    """

    reconnect_backoff_ms: int | timedelta | str | None
    """The pause before a broker is connected to again. Default: 50. Without effect: A broker that
    is away is tried again after the pauses of retry.backoff.ms.
    """

    reconnect_backoff_max_ms: int | timedelta | str | None
    """The longest of these pauses. Default: 1000. Without effect: A broker that is away is tried
    again after the pauses of retry.backoff.ms.
    """

    connections_max_idle_ms: int | timedelta | str | None
    """After how long an unused connection is closed. Default: 540000. Without effect: A connection
    stays until the broker closes it, and is made again when it is needed.
    """

    metadata_recovery_strategy: Literal["none", "rebootstrap"] | None
    """What happens when no known broker answers. Default: rebootstrap. Without effect: The
    bootstrap servers are asked whenever no known broker answers.
    """

    metadata_recovery_rebootstrap_trigger_ms: int | timedelta | str | None
    """How long no broker answers until the bootstrap servers are asked. Default: 300000. Without
    effect: The bootstrap servers are asked whenever no known broker answers.
    """

    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] | None
    """How names of brokers are looked up. Default: use_all_dns_ips. Without effect: All addresses
    of a name are tried, each time one is connected to.
    """

    send_buffer_bytes: int | str | None
    """The size of a socket's send buffer; -1 leaves it to the system. Default: 131072. Without
    effect: The operating system sizes the buffers of a connection as it is used.
    """

    receive_buffer_bytes: int | str | None
    """The size of a socket's receive buffer; -1 leaves it to the system. Default: 65536. Without
    effect: The operating system sizes the buffers of a connection as it is used.
    """

    enable_metrics_push: bool | str | None
    """Whether the client sends its metrics to the brokers that ask for them. Default: true. Without
    effect: Metrics are not sent to the brokers; ask the client for them with metrics().
    """

    metrics_sample_window_ms: int | timedelta | str | None
    """The time over which metrics are sampled. Default: 30000. Without effect: Rates and averages
    are over the last 30 to 60 seconds.
    """

    metrics_num_samples: int | str | None
    """How many samples metrics are made of. Default: 2. Without effect: Rates and averages are over
    the last 30 to 60 seconds.
    """

    metrics_recording_level: Literal["INFO", "DEBUG", "TRACE"] | None
    """How much is measured. Default: INFO. Without effect: All metrics are always recorded."""

    metric_reporters: str | Sequence[str] | None
    """Classes that report metrics. Without effect: They are classes of Java; ask the client with
    metrics().
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
    """How much memory records may take that are not yet written. Default: 33554432."""

    buffer_full_policy: Literal["block", "drop"] | None
    """What becomes of a record for which that memory has no room: its send waits for up to
    max.block.ms, or it is dropped, counted and told to on_drop. Default: block.
    """

    max_block_ms: int | timedelta | str | None
    """How long a call may wait for memory, for a topic that is not known yet, or for a transaction
    to be begun or ended. Default: 60000.
    """

    exit_flush_timeout_ms: int | timedelta | str | None
    """How long the end of the program waits for records of producers that nobody closed; 0 for not
    at all. What is not written by then is logged. An AsyncProducer cannot be waited for, and is
    logged only. Default: 10000.
    """

    max_request_size: int | str | None
    """The largest record, and about the largest request, in bytes before compression. Default:
    1048576.
    """

    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None
    """How batches are compressed. Default: none."""

    compression_gzip_level: int | str | None
    """How hard gzip tries, from 1 to 9; -1 leaves it to gzip. Default: -1."""

    compression_lz4_level: int | str | None
    """How hard lz4 tries. Default: 9."""

    compression_zstd_level: int | str | None
    """How hard zstd tries. Default: 3."""

    retries: int | str | None
    """How often a batch is sent again; delivery.timeout.ms bounds it as well, and is usually what
    should be changed. Default: 2147483647.
    """

    delivery_timeout_ms: int | timedelta | str | None
    """How long it may take until it is known what became of a record: linger, all attempts and the
    pauses between them. Default: 120000.
    """

    max_in_flight_requests_per_connection: int | str | None
    """How many requests a broker may owe an answer. Without idempotence, more than 1 lets a retry
    change the order. Default: 5.
    """

    partitioner_ignore_keys: bool | str | None
    """Whether the default partitioner treats records with keys like those without. Default: false.
    """

    partitioner_adaptive_partitioning_enable: bool | str | None
    """Whether records without a key prefer partitions of which fewer batches wait to be sent.
    Default: true.
    """

    partitioner_availability_timeout_ms: int | timedelta | str | None
    """After how long without progress a partition gets no records without a key. Default: 0.
    Without effect: A partition is avoided while it has no leader or many batches wait.
    """

    metadata_max_idle_ms: int | timedelta | str | None
    """How long an unused topic is remembered. Default: 300000. Without effect: A topic is
    remembered as long as the producer lives.
    """

    partitioner_class: str | None
    """The class that chooses partitions. Without effect: Give the constructor a partitioner."""

    interceptor_classes: str | Sequence[str] | None
    """The classes of interceptors. Without effect: Give the constructor interceptors."""

    transactional_id: str | None
    """The name under which transactions are made; a new producer with the same name fences the old
    one.
    """

    transaction_timeout_ms: int | timedelta | str | None
    """How long a transaction may stay open before its coordinator aborts it. Default: 60000."""

    transaction_two_phase_commit_enable: bool | str | None
    """Whether transactions can be prepared, and then stay open until they are decided. Default:
    false.
    """

    spool_fsync: Literal["always", "interval", "never"] | None
    """When the spool's files are forced to disk: before each send returns, every
    spool.fsync.interval.ms, or never by us. A process that is killed loses nothing with any of
    them; a machine that loses its power keeps only what was forced. Default: always.
    """

    spool_fsync_interval_ms: int | timedelta | str | None
    """How long a record may wait to be forced to disk if spool.fsync is interval. Default: 1000."""

    spool_max_bytes: int | str | None
    """How much disk the spool may take for what is not shipped yet. When it is full,
    buffer.full.policy says whether a send waits for room or drops its record. Default: 1073741824.
    """

    spool_segment_bytes: int | str | None
    """The size at which the spool begins a new file, at most a quarter of spool.max.bytes. Disk is
    given back by whole files. Default: 16777216.
    """

    spool_window_records: int | str | None
    """How far shipping may run ahead of the position that is safely on disk, which is also the
    largest number of records that a crash can cause to be sent a second time. Default: 10000.
    """


class ConsumerSettings(ClientSettings, total=False):
    """For `Consumer` and `AsyncConsumer`."""

    group_id: str | None
    """The group that this consumer belongs to, with which it shares the partitions of its topics;
    needed to subscribe and to commit.
    """

    group_instance_id: str | None
    """The name of a static member, which may go and come back within session.timeout.ms without a
    rebalance.
    """

    group_protocol: Literal["classic", "consumer"] | None
    """Whether the members of the group share out the partitions themselves (classic) or the
    coordinator does (consumer). Default: classic.
    """

    group_remote_assignor: str | None
    """With group.protocol=consumer, the assignor that the coordinator uses, by its name; it chooses
    if there is none.
    """

    partition_assignment_strategy: AssignorLike | Sequence[AssignorLike] | None
    """With group.protocol=classic, the assignors in order of preference: range, roundrobin, sticky,
    cooperative-sticky, or one of your own as an object. Default: range,cooperative-sticky.
    """

    session_timeout_ms: int | timedelta | str | None
    """After how long without a heartbeat the coordinator takes this member for dead. Default:
    45000.
    """

    heartbeat_interval_ms: int | timedelta | str | None
    """How often the coordinator hears of this member; at most a third of session.timeout.ms.
    Default: 3000.
    """

    max_poll_interval_ms: int | timedelta | str | None
    """How long may pass between two calls of poll before this member leaves the group. Default:
    300000.
    """

    max_poll_records: int | str | None
    """How many records one call of poll returns at most. Default: 500."""

    enable_auto_commit: bool | str | None
    """Whether what poll returned is committed by the calls of poll that follow. Default: true."""

    auto_commit_interval_ms: int | timedelta | str | None
    """How often that happens. Default: 5000."""

    auto_offset_reset: str | None
    """Where to read from if nothing is committed, or what is does not exist any more: earliest,
    latest, none (an error), or by_duration:PnDTnHnMn.nS for records from that long ago on. Default:
    latest.
    """

    isolation_level: Literal["read_uncommitted", "read_committed"] | None
    """Whether records of open and aborted transactions are seen. Default: read_uncommitted."""

    fetch_min_bytes: int | str | None
    """How much a broker collects before it answers a fetch. Default: 1."""

    fetch_max_bytes: int | str | None
    """How much one answer to a fetch may hold; a larger first batch comes all the same. Default:
    52428800.
    """

    max_partition_fetch_bytes: int | str | None
    """How much of it one partition may have. Default: 1048576."""

    fetch_max_wait_ms: int | timedelta | str | None
    """How long a broker waits for fetch.min.bytes. Default: 500."""

    check_crcs: bool | str | None
    """Whether the checksums of records are checked. Default: true."""

    corrupt_batch_policy: Literal["fail", "skip"] | None
    """What happens at a batch that cannot be read: an error that names its offsets, again at each
    poll until somebody seeks, or it is left out, counted and logged. Default: fail.
    """

    client_rack: str | None
    """Where this consumer is, so that it may read from a replica that is near."""

    allow_auto_create_topics: bool | str | None
    """Whether subscribing to a topic may create it, if the broker does such things. Default: true.
    """

    exclude_internal_topics: bool | str | None
    """Whether a pattern leaves out internal topics. Default: true."""

    default_api_timeout_ms: int | timedelta | str | None
    """How long calls wait that have no time limit of their own. Default: 60000."""

    interceptor_classes: str | Sequence[str] | None
    """Classes that see records and commits. Without effect: Give the constructor objects:
    interceptors=[...].
    """


class AdminSettings(ClientSettings, total=False):
    """For `Admin` and `AsyncAdmin`."""

    default_api_timeout_ms: int | timedelta | str | None
    """How long an operation may take with all its retries, unless the call says otherwise. Default:
    60000.
    """

    retries: int | str | None
    """How often a failed request is tried again. Default: 2147483647. Without effect: The time of
    an operation bounds its retries, not their number.
    """
