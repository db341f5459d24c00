"""`--formatter`: how records are printed that are more than text, by our names or Kafka's classes.

Records of the coordinators' topics can be read that way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from headwater.cli.records.record_format import FormatRecords
    from headwater.client.connection.cluster_connection import ClusterConnection

DEFAULT: Final = "default"
OFFSETS: Final = "offsets"
GROUP_METADATA: Final = "group-metadata"
TRANSACTION_LOG: Final = "transaction-log"

NAMES: Final = (DEFAULT, OFFSETS, GROUP_METADATA, TRANSACTION_LOG)

_TOOLS: Final = "org.apache.kafka.tools.consumer."
_OLD_GROUPS: Final = "kafka.coordinator.group.GroupMetadataManager$"
_OLD_TRANSACTIONS: Final = "kafka.coordinator.transaction.TransactionLog$"

#: Kafka's classes, of its newer and of its older tools.
ALIASES: Final = {
    f"{_TOOLS}DefaultMessageFormatter": DEFAULT,
    "kafka.tools.DefaultMessageFormatter": DEFAULT,
    f"{_TOOLS}OffsetsMessageFormatter": OFFSETS,
    f"{_OLD_GROUPS}OffsetsMessageFormatter": OFFSETS,
    f"{_TOOLS}GroupMetadataMessageFormatter": GROUP_METADATA,
    f"{_OLD_GROUPS}GroupMetadataMessageFormatter": GROUP_METADATA,
    f"{_TOOLS}TransactionLogMessageFormatter": TRANSACTION_LOG,
    f"{_OLD_TRANSACTIONS}TransactionLogMessageFormatter": TRANSACTION_LOG,
}

#: How long Kafka keeps offsets unless it is told otherwise.
RETENTION_DEFAULT_MS: Final = 7 * 24 * 3_600_000

_RETENTION: Final = "offsets.retention.minutes"
_MINUTE_MS: Final = 60_000


def parse_formatter(text: str) -> str:
    """One of `NAMES`."""
    # A shell may have left the backslash in front of the dollar.
    name = ALIASES.get(text.replace("\\", ""), text)
    if name not in NAMES:
        raise typer.BadParameter(
            f"{text!r} is not one of {', '.join(NAMES)}, nor of Kafka's classes for these",
            param_hint="--formatter",
        )
    return name


async def stored_format(
    name: str, connection: ClusterConnection, *, as_json: bool
) -> FormatRecords:
    """What prints the records of a coordinator's topic."""
    from headwater.cli.records import coordinator_format as stored

    if name == OFFSETS and not as_json:
        return stored.OffsetsFormat(await offsets_retention_ms(connection))
    kinds = {
        OFFSETS: stored.OFFSETS,
        GROUP_METADATA: stored.GROUP_METADATA,
        TRANSACTION_LOG: stored.TRANSACTION_LOG,
    }
    return stored.StoredJsonFormat(kinds[name])


async def offsets_retention_ms(connection: ClusterConnection) -> int:
    """How long the cluster keeps offsets, if it tells, and else Kafka's default."""
    from headwater.base.errors import KafkaError
    from headwater.client.admin import ConfigOperations, ConfigResource, ResourceType

    for broker_id in connection.metadata.brokers:
        broker = ConfigResource(ResourceType.BROKER, str(broker_id))
        described = await ConfigOperations(connection).describe_configs(
            [broker], names=[_RETENTION]
        )
        entries = described[broker]
        if not isinstance(entries, KafkaError):
            for entry in entries:
                if entry.name == _RETENTION and entry.value is not None:
                    return int(entry.value) * _MINUTE_MS
    return RETENTION_DEFAULT_MS
