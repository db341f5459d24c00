"""The one table of APIs: dispatch and ApiVersions are both made from it.

A key that appears twice fails at import, because then one of the two handlers would never be asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.base.checks import check
from headwater.broker.api_handler import ApiHandler, ApiTable, ExchangeHandler
from headwater.broker.handlers import (
    alter_configs,
    alter_replica_log_dirs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from headwater.wire.api_keys import ApiKey


def build_table(handlers: Iterable[ApiHandler | ExchangeHandler]) -> ApiTable:
    """The table of these handlers, by key."""
    table: dict[ApiKey, ApiHandler | ExchangeHandler] = {}
    for handler in handlers:
        check(handler.api_key not in table, "%s has two handlers", handler.api_key.name)
        table[handler.api_key] = handler
    return table


API_TABLE = build_table(
    module.API
    for module in (
        alter_configs,
        alter_replica_log_dirs,
        api_versions,
        create_partitions,
        create_topics,
        delete_records,
        delete_topics,
        describe_cluster,
        describe_configs,
        describe_log_dirs,
        describe_topic_partitions,
        fetch,
        incremental_alter_configs,
        init_producer_id,
        list_config_resources,
        list_offsets,
        metadata,
        offset_for_leader_epoch,
        produce,
    )
)
