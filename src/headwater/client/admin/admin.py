"""`Admin`: administers a cluster from ordinary code, in any thread.

with Admin(bootstrap_servers="127.0.0.1:9092") as admin:
    admin.create_topics([NewTopic("orders", partition_count=3)])

Each method is that of `AsyncAdmin`, run on a background thread while the caller waits; types,
defaults and docs are taken over from there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.errors import ClientClosedError
from headwater.client.machines.background_loop import BackgroundLoop
from headwater.client.settings.typed import AdminSettings

P = ParamSpec("P")
R = TypeVar("R")


def _waiting(
    method: Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Admin, P], R]:
    """The method for callers that wait."""

    @wraps(method)
    def wait(self: Admin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(method(self.core, *args, **kwargs))

    return wait


class Admin:
    """Administers a cluster, from any thread. Use it with `with`, or call `close` at the end.

    Settings have Kafka's names: in the mapping `config` as they are, as keywords with underscores
    for dots. `help(headwater.AdminSettings)` shows them all, with types and defaults.
    """

    def __init__(
        self, config: Mapping[str, object] | None = None, **settings: Unpack[AdminSettings]
    ) -> None:
        self.core = AsyncAdmin(config, **settings)
        self._background = BackgroundLoop("headwater-admin")
        try:
            self.run(self.core.start())
        except BaseException:
            self._background.close()
            raise

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Wait for something that the background thread does."""
        if self._background.is_closed:
            work.close()
            raise ClientClosedError("The admin is closed.")
        return self._background.run(work)

    def close(self) -> None:
        """Close all connections and end the background thread."""
        if not self._background.is_closed:
            self._background.run(self.core.close())
            self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    create_topics = _waiting(AsyncAdmin.create_topics)
    delete_topics = _waiting(AsyncAdmin.delete_topics)
    create_partitions = _waiting(AsyncAdmin.create_partitions)
    list_topics = _waiting(AsyncAdmin.list_topics)
    describe_topics = _waiting(AsyncAdmin.describe_topics)
    elect_leaders = _waiting(AsyncAdmin.elect_leaders)
    alter_partition_reassignments = _waiting(AsyncAdmin.alter_partition_reassignments)
    list_partition_reassignments = _waiting(AsyncAdmin.list_partition_reassignments)
    takes_throttles = _waiting(AsyncAdmin.takes_throttles)
    throttle_partition_reassignments = _waiting(AsyncAdmin.throttle_partition_reassignments)

    describe_configs = _waiting(AsyncAdmin.describe_configs)
    alter_configs = _waiting(AsyncAdmin.alter_configs)
    list_config_resources = _waiting(AsyncAdmin.list_config_resources)

    list_offsets = _waiting(AsyncAdmin.list_offsets)
    delete_records = _waiting(AsyncAdmin.delete_records)

    list_delayed = _waiting(AsyncAdmin.list_delayed)
    describe_delayed = _waiting(AsyncAdmin.describe_delayed)
    cancel_delayed = _waiting(AsyncAdmin.cancel_delayed)
    reschedule_delayed = _waiting(AsyncAdmin.reschedule_delayed)
    deliver_delayed_now = _waiting(AsyncAdmin.deliver_delayed_now)
    delayed_stats = _waiting(AsyncAdmin.delayed_stats)

    describe_cluster = _waiting(AsyncAdmin.describe_cluster)
    api_versions = _waiting(AsyncAdmin.api_versions)
    describe_features = _waiting(AsyncAdmin.describe_features)
    describe_log_dirs = _waiting(AsyncAdmin.describe_log_dirs)
    alter_replica_log_dirs = _waiting(AsyncAdmin.alter_replica_log_dirs)
    unregister_broker = _waiting(AsyncAdmin.unregister_broker)

    list_groups = _waiting(AsyncAdmin.list_groups)
    describe_groups = _waiting(AsyncAdmin.describe_groups)
    delete_groups = _waiting(AsyncAdmin.delete_groups)
    remove_members = _waiting(AsyncAdmin.remove_members)

    list_group_offsets = _waiting(AsyncAdmin.list_group_offsets)
    alter_group_offsets = _waiting(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = _waiting(AsyncAdmin.delete_group_offsets)

    describe_producers = _waiting(AsyncAdmin.describe_producers)
    fence_producers = _waiting(AsyncAdmin.fence_producers)
    list_transactions = _waiting(AsyncAdmin.list_transactions)
    describe_transactions = _waiting(AsyncAdmin.describe_transactions)
    abort_transaction = _waiting(AsyncAdmin.abort_transaction)
    find_hanging = _waiting(AsyncAdmin.find_hanging)

    open_transactions = _waiting(AsyncAdmin.open_transactions)
    end_transactions = _waiting(AsyncAdmin.end_transactions)
    take_over_transactions = _waiting(AsyncAdmin.take_over_transactions)
